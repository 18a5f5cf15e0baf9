//go:build !linux

package ioengine

import "errors"

func probeUring() error { return errors.New("not on this system") }

func newUringBackend(*worker, []*file) (backend, error) { return nil, probeUring() }
