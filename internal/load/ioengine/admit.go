package ioengine

import (
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// admit returns the path by which a device is opened. One that is written to goes past the guard first, which holds a
// block device from then on; it is opened by the guard's descriptor, because its name may stand for another one by now.
func (in *instance) admit(device load.Device, how backend.Access) (string, error) {
	if !how.Write || device.Held {
		return device.Path, nil
	}
	held, err := in.guard.Admit(device.Path, device.Consent)
	var refused *diag.Error
	switch {
	case errors.As(err, &refused):
		return "", fmt.Errorf("device %q: %w", device.Name, err)
	case err != nil:
		return "", notOpened(device, err)
	case held == nil:
		return device.Path, nil
	}
	return fmt.Sprintf("/proc/self/fd/%d", held.Fd()), nil
}

func notOpened(device load.Device, err error) error {
	return &diag.Error{
		Code: "open-device", Message: fmt.Sprintf("open device %q", device.Name), Err: err, Exit: diag.ExitUnavailable,
	}
}
