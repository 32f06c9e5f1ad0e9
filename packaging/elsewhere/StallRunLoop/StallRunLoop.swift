// The run loop is for Linux; elsewhere this module is empty.
