//go:build !linux

package thread

import "errors"

func (t *Settings) apply() error { return errors.ErrUnsupported }
