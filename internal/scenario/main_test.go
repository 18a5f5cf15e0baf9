package scenario_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/scenario"
)

// takeMemory fills memory until it is killed, or gives up at a gigabyte.
func takeMemory() {
	var all [][]byte
	for range 1 << 10 {
		all = append(all, bytes.Repeat([]byte{1}, 1<<20))
		time.Sleep(2 * time.Millisecond)
	}
	os.Exit(len(all) % 2)
}

// The test binary is also the child that reads scenarios.
func TestMain(m *testing.M) {
	if scenario.IsChild() {
		os.Exit(scenario.ChildMain(os.Stdin, os.Stdout))
	}
	if os.Args[len(os.Args)-1] == "__greedy" {
		takeMemory()
	}
	goleak.VerifyTestMain(m)
}
