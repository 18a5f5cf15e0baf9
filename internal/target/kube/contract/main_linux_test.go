package contract_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/lab/kubelab"
)

// TestMain is also the agent in simulated pods, and a part of clusters.
func TestMain(m *testing.M) {
	runAgent()
	harness("").Main()
	code := kubelab.Main(m, kubelab.Options{Nodes: 1, SimulatedNodes: 20})
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
