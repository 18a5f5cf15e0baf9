package ioengine

import "golang.org/x/sys/unix"

// beginUsage and takeUsage are called on the worker's thread, which may have worked for others before.
func (a *Account) beginUsage() { a.use(-1) }

func (a *Account) takeUsage() { a.use(1) }

func (a *Account) use(sign int64) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return
	}
	a.UserNanos += sign * u.Utime.Nano()
	a.SystemNanos += sign * u.Stime.Nano()
	a.Switches += sign * (u.Nvcsw + u.Nivcsw)
	a.MinorFaults += sign * u.Minflt
	a.MajorFaults += sign * u.Majflt
}
