package ioengine_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

func TestContractOfUring(t *testing.T) {
	requireUring(t)
	loadtest.Run(t, ioengine.New(), nil)
}

func TestContractOfBackends(t *testing.T) {
	backends := []string{"psync", "libaio", "pvsync2", "mmap"}
	if testing.Short() {
		backends = backends[:2] // one that blocks and one with a queue
	}
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) { loadtest.Run(t, ioengine.Generator{Backend: backend}, nil) })
	}
}

func requireUring(t testing.TB) {
	t.Helper()
	plan, err := ioengine.New().Plan(job("rw=read ioengine=io_uring"))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Engine.String() != "native io_uring" {
		testreq.Skip(t, "needs io_uring: "+plan.Engine.String())
	}
}

var _ load.Generator = ioengine.Generator{}
