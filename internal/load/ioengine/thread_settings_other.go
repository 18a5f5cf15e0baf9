//go:build !linux

package ioengine

import "errors"

func (t *threadSettings) apply() error { return errors.ErrUnsupported }
