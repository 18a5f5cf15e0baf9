//go:build !linux

package ioengine

import (
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
)

func (s *jobSpec) checkNodes() error {
	if nodeSettingsOf(&s.job.Control.Nodes) == (nodeSettings{}) {
		return nil
	}
	return &diag.Error{
		Code: "memory-nodes", Message: fmt.Sprintf("job %q: memory nodes", s.job.Name), Err: errors.ErrUnsupported,
		Exit: diag.ExitUnavailable, Hint: "numa_cpu_nodes and numa_mem_policy need Linux",
	}
}

func (n *nodeSettings) bind([]byte) error { return nil }
