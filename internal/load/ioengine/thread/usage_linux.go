package thread

import "golang.org/x/sys/unix"

// UsageNow returns what this thread, which may have worked for others before, has used so far.
func UsageNow() Usage {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return Usage{
		UserNanos: u.Utime.Nano(), SystemNanos: u.Stime.Nano(), Switches: u.Nvcsw + u.Nivcsw,
		MinorFaults: u.Minflt, MajorFaults: u.Majflt,
	}
}
