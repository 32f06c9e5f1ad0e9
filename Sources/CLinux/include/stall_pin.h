// Keeps the image with this code loaded until the process ends.
#pragma once

/// Called before a handler is installed that remains for the life of the process: after a `dlclose` of the library that
/// contains it, the next signal would jump to unmapped memory. Takes the loader's lock and may allocate.
void stall_pin_image(void);
