/* libnixl_capi.so of a wheel: it only brings libnixl_capi.so.0 with it, and C wants something to stand here. */
typedef int nothing;
