package load

import "errors"

// ErrLost means that the VM or its agent disappeared while a workload ran there.
var ErrLost = errors.New("agent lost")
