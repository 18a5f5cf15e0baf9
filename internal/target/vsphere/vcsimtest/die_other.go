//go:build !linux

package vcsimtest

import "syscall"

func dieWithThis() *syscall.SysProcAttr { return nil }
