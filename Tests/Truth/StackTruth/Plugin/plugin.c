// Loaded with dlopen by the victim: a frame of an image that came late.
int plugin_run(int (*body)(int), int argument) { return body(argument) + 1; }
