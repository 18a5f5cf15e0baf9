//go:build !linux

package thread

import (
	"errors"
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

func CheckNodes(job string, c *fiojob.Control) error {
	if nodeSettingsOf(&c.Nodes) == (nodeSettings{}) {
		return nil
	}
	return &diag.Error{
		Code: "memory-nodes", Message: fmt.Sprintf("job %q: memory nodes", job), Err: errors.ErrUnsupported,
		Exit: diag.ExitUnavailable, Hint: "numa_cpu_nodes and numa_mem_policy need Linux",
	}
}

func (t *Settings) Bind([]byte) error { return nil }
