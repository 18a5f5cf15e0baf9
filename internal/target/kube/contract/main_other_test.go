//go:build !linux

package contract_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runAgent()
	harness("").Main()
	goleak.VerifyTestMain(m)
}
