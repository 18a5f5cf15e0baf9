package load

import "errors"

// ErrLost says that the VM or its agent went away while a workload ran there.
var ErrLost = errors.New("agent lost")
