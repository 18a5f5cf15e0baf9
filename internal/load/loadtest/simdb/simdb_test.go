package simdb_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/loadtest/simdb"
)

func workload(testing.TB) load.Workload {
	return load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: "simdb", Seed: 42}
}

func TestContract(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: simdb.Generator{}, Endless: workload})
}

func TestOptions(t *testing.T) {
	for option, value := range map[string]string{"bs": "4k", simdb.OptionConnections: "many"} {
		w := workload(t)
		w.Options = map[string]string{option: value}
		if _, err := (simdb.Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("option %s=%s: %v", option, value, err)
		}
	}
}
