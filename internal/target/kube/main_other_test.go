//go:build !linux

package kube

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runAgent()
	goleak.VerifyTestMain(m)
}
