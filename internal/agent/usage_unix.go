//go:build unix

package agent

import "golang.org/x/sys/unix"

// processTimes returns seconds of CPU time and context switches of this process and its ended children.
func processTimes() (user, system, switches float64) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if unix.Getrusage(who, &usage) != nil {
			continue
		}
		user += seconds(usage.Utime.Nano())
		system += seconds(usage.Stime.Nano())
		switches += float64(usage.Nvcsw + usage.Nivcsw)
	}
	return user, system, switches
}

func machineKernel() kernel {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return kernel{}
	}
	return kernel{
		unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:]),
		unix.ByteSliceToString(u.Machine[:]),
	}
}
