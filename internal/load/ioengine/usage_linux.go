package ioengine

import "golang.org/x/sys/unix"

// usage is what a thread has used so far. It is taken on the worker's thread, which may have worked for others before.
type usage struct{ unix.Rusage }

func threadUsage() (u usage) {
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u.Rusage)
	return u
}

// addUsage adds what a thread has used between two readings. Of a worker whose operation hangs for good the account has what it
// had used before, if anything.
func (a *Account) addUsage(begun, u usage) {
	a.UserNanos += u.Utime.Nano() - begun.Utime.Nano()
	a.SystemNanos += u.Stime.Nano() - begun.Stime.Nano()
	a.Switches += u.Nvcsw + u.Nivcsw - begun.Nvcsw - begun.Nivcsw
	a.MinorFaults += u.Minflt - begun.Minflt
	a.MajorFaults += u.Majflt - begun.Majflt
}
