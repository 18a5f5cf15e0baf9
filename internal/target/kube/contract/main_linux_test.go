package contract_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/lab/kubelab"
)

// besides is how many tests run beside each other: most of them wait for a cluster.
const besides = 4

// TestMain is also the agent in simulated pods, and a part of clusters.
func TestMain(m *testing.M) {
	runAgent()
	harness("").Main()
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(besides)); err != nil {
		panic(err)
	}
	// A test compares averages with the kernel's counters: it needs several, and any length of them will do.
	code := kubelab.Main(m, kubelab.Options{Nodes: 1, SimulatedNodes: 20, Housekeeping: 2 * time.Second})
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
