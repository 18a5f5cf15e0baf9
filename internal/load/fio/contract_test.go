package fio_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/load/fio"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

func TestContract(t *testing.T) {
	needFio(t)
	loadtest.Run(t, fio.Generator{}, nil)
}
