//go:build !linux

package rehearsal_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runAgent()
	goleak.VerifyTestMain(m)
}
