package thread

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// nodesFolder describes the memory nodes of the machine.
var nodesFolder = "/sys/devices/system/node"

// Policies of set_mempolicy(2) and mbind(2).
var memoryPolicies = map[string]uintptr{"default": 0, "prefer": 1, "bind": 2, "interleave": 3, "local": 4}

// CheckNodes refuses memory nodes that the machine does not have, before anything is opened.
func CheckNodes(job string, c *fiojob.Control) error {
	n := nodeSettingsOf(&c.Nodes)
	if n == (nodeSettings{}) {
		return nil
	}
	there, err := onlineNodes()
	for _, key := range []struct{ name, list string }{{"numa_cpu_nodes", n.cpus}, {"numa_mem_policy", n.memory}} {
		for _, node := range unpacked(key.list) {
			if err == nil && !slices.Contains(there, node) {
				return &diag.Error{
					Code: "memory-node", Exit: diag.ExitUnavailable,
					Message: fmt.Sprintf("job %q: %s: this machine has no memory node %d", job, key.name, node),
					Hint:    fmt.Sprintf("it has %v", there),
				}
			}
		}
	}
	if err == nil {
		_, err = n.within(c.CPUs)
	}
	if err != nil {
		return &diag.Error{
			Code: "memory-nodes", Exit: diag.ExitUnavailable, Err: err, Message: fmt.Sprintf("job %q: memory nodes", job),
		}
	}
	return nil
}

// onlineNodes lists the memory nodes of the machine. A kernel without them has one, which is node 0.
func onlineNodes() ([]int, error) {
	text, err := os.ReadFile(filepath.Join(nodesFolder, "online"))
	if errors.Is(err, fs.ErrNotExist) {
		return []int{0}, nil
	}
	if err != nil {
		return nil, err
	}
	return kernelList(string(text))
}

// kernelList reads numbers and ranges as sysfs has them: "0-3,8". An empty list has none.
func kernelList(text string) (list []int, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		if part == "" {
			continue
		}
		lowText, highText, isRange := strings.Cut(part, "-")
		low, err := strconv.Atoi(lowText)
		high := low
		if err == nil && isRange {
			high, err = strconv.Atoi(highText)
		}
		if err != nil || low < 0 || high < low || high >= 1<<16 {
			return nil, fmt.Errorf("list of numbers %q is none", text)
		}
		for n := low; n <= high; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}

// within returns those of some CPUs (none: all) that belong to the nodes of these settings. Without nodes it returns what it
// is given.
func (n *nodeSettings) within(cpus []int) ([]int, error) {
	if n.cpus == "" && !n.cpusAll {
		return cpus, nil
	}
	nodes := unpacked(n.cpus)
	if n.cpusAll {
		var err error
		if nodes, err = onlineNodes(); err != nil {
			return nil, fmt.Errorf("numa_cpu_nodes: %w", err)
		}
	}
	var of []int
	for _, node := range nodes {
		text, err := os.ReadFile(filepath.Join(nodesFolder, "node"+strconv.Itoa(node), "cpulist"))
		if errors.Is(err, fs.ErrNotExist) && node == 0 {
			return cpus, nil // a kernel without nodes
		}
		var list []int
		if err == nil {
			list, err = kernelList(string(text))
		}
		if err != nil {
			return nil, fmt.Errorf("numa_cpu_nodes: %w", err)
		}
		of = append(of, list...)
	}
	if len(cpus) > 0 {
		of = slices.DeleteFunc(of, func(cpu int) bool { return !slices.Contains(cpus, cpu) })
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("numa_cpu_nodes: memory nodes %v have none of the CPUs that the job may run on", nodes)
	}
	return of, nil
}

// nodeMask is a set of nodes as the kernel takes it.
type nodeMask [fiojob.NodesMax / 64]uint64

// mask is the set of the policy's nodes; nil where it names none.
func (n *nodeSettings) mask() (*nodeMask, error) {
	nodes := unpacked(n.memory)
	if n.memoryAll {
		var err error
		if nodes, err = onlineNodes(); err != nil {
			return nil, fmt.Errorf("numa_mem_policy: %w", err)
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	mask := &nodeMask{}
	for _, node := range nodes {
		mask[node/64] |= 1 << (node % 64)
	}
	return mask, nil
}

// setMemoryPolicy gives the calling thread the policy.
func (n *nodeSettings) setMemoryPolicy() error {
	return n.withPolicy(func(mode uintptr, mask *nodeMask, bits uintptr) unix.Errno {
		_, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, mode, uintptr(unsafe.Pointer(mask)), bits)
		return errno
	})
}

// Bind gives memory that was not touched yet the policy of the nodes.
func (t *Settings) Bind(memory []byte) error {
	if len(memory) == 0 {
		return nil
	}
	return t.nodes.withPolicy(func(mode uintptr, mask *nodeMask, bits uintptr) unix.Errno {
		_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&memory[0])), uintptr(len(memory)), mode,
			uintptr(unsafe.Pointer(mask)), bits, 0)
		return errno
	})
}

func (n *nodeSettings) withPolicy(call func(mode uintptr, mask *nodeMask, bits uintptr) unix.Errno) error {
	if n.policy == "" {
		return nil
	}
	mask, err := n.mask()
	if err != nil {
		return err
	}
	bits := uintptr(0)
	if mask != nil {
		bits = fiojob.NodesMax + 1 // the kernel takes one off
	}
	errno := call(memoryPolicies[n.policy], mask, bits)
	if errno == 0 {
		return nil
	}
	err = fmt.Errorf("numa_mem_policy=%s: %w", n.policy, errno)
	if errno == unix.EPERM || errno == unix.ENOSYS {
		err = fmt.Errorf("%w (the kernel has no memory nodes, or a container's filter hides the call)", err)
	}
	return err
}
