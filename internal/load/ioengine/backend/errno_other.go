//go:build unix && !linux

package backend

import "golang.org/x/sys/unix"

// What represents an operation that is not offered here.
const errnoUnsupported = int32(unix.ENOTSUP)
