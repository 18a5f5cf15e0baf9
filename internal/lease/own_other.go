//go:build !linux

package lease

import "context"

// OwnLibvirt finds none.
func OwnLibvirt() (Secrets, bool) { return Secrets{}, false }

// Machine is never called.
func (Secrets) Machine(context.Context) (string, error) { return "", nil }

// Mark does nothing on this system.
func Mark(context.Context, Holder) func() { return func() {} }
