package rehearsal

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/lab/kubelab"
)

// besides is how many tests run beside each other: most of them wait for the cluster.
const besides = 6

// TestMain is also a part of clusters.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(besides)); err != nil {
		panic(err)
	}
	code := kubelab.Main(m, kubelab.Options{Nodes: 4})
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
