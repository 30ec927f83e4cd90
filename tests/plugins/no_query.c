/* A shared library that is no plugin: it has no query function. */
int not_a_plugin(void);
int not_a_plugin(void) { return 0; }
