// For Linux alone; elsewhere this module is empty.
