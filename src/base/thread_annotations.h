#pragma once

// Clang's thread-safety annotations; nothing for other compilers. A build with clang and -Wthread-safety checks them.

#if defined(__clang__)
#define HAWSER_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define HAWSER_THREAD_ANNOTATION(x)
#endif

#define HAWSER_CAPABILITY(name) HAWSER_THREAD_ANNOTATION(capability(name))
#define HAWSER_SCOPED_CAPABILITY HAWSER_THREAD_ANNOTATION(scoped_lockable)
#define HAWSER_GUARDED_BY(mutex) HAWSER_THREAD_ANNOTATION(guarded_by(mutex))
#define HAWSER_PT_GUARDED_BY(mutex) HAWSER_THREAD_ANNOTATION(pt_guarded_by(mutex))
#define HAWSER_REQUIRES(...) HAWSER_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define HAWSER_EXCLUDES(...) HAWSER_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define HAWSER_ACQUIRE(...) HAWSER_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define HAWSER_TRY_ACQUIRE(...) HAWSER_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define HAWSER_RELEASE(...) HAWSER_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define HAWSER_ASSERT_HELD(...) HAWSER_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
#define HAWSER_RETURN_CAPABILITY(mutex) HAWSER_THREAD_ANNOTATION(lock_returned(mutex))
#define HAWSER_NO_THREAD_SAFETY_ANALYSIS HAWSER_THREAD_ANNOTATION(no_thread_safety_analysis)
