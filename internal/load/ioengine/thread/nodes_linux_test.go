package thread

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// machine makes a folder like that of a machine with these memory nodes.
func machine(t *testing.T, cpus ...string) {
	t.Helper()
	dir := t.TempDir()
	for i, list := range cpus {
		node := filepath.Join(dir, fmt.Sprintf("node%d", i))
		if err := os.Mkdir(node, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(node, "cpulist"), []byte(list+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	online := []byte(fmt.Sprintf("0-%d\n", len(cpus)-1))
	if err := os.WriteFile(filepath.Join(dir, "online"), online, 0o644); err != nil {
		t.Fatal(err)
	}
	was := nodesFolder
	nodesFolder = dir
	t.Cleanup(func() { nodesFolder = was })
}

func TestCPUsOfNodes(t *testing.T) {
	machine(t, "0-1,8", "2-3", "")
	for _, c := range []struct {
		nodes   fiojob.Nodes
		allowed []int
		want    string
	}{
		{fiojob.Nodes{}, nil, "[]"},
		{fiojob.Nodes{}, []int{5}, "[5]"},
		{fiojob.Nodes{CPUs: []int{0}}, nil, "[0 1 8]"},
		{fiojob.Nodes{CPUs: []int{0, 1}}, []int{1, 2, 9}, "[1 2]"},
		{fiojob.Nodes{CPUsAll: true}, nil, "[0 1 8 2 3]"},
		{fiojob.Nodes{CPUs: []int{1}}, []int{0}, "none of the CPUs"},
		{fiojob.Nodes{CPUs: []int{2}}, nil, "none of the CPUs"},
		{fiojob.Nodes{CPUs: []int{3}}, nil, "no memory node 3"},
		{fiojob.Nodes{Policy: "bind", Memory: []int{0, 7}}, nil, "no memory node 7"},
	} {
		n := nodeSettingsOf(&c.nodes)
		var got string
		if err := CheckNodes("j", &fiojob.Control{Nodes: c.nodes, CPUs: c.allowed}); err != nil {
			got = err.Error()
		} else if cpus, err := n.within(c.allowed); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(cpus)
		}
		if got != c.want && !(c.want[0] != '[' && strings.Contains(got, c.want)) {
			t.Errorf("%+v with CPUs %v: %s, want %s", c.nodes, c.allowed, got, c.want)
		}
	}
}

// A kernel without memory nodes has one.
func TestMachineWithoutNodes(t *testing.T) {
	was := nodesFolder
	nodesFolder = filepath.Join(t.TempDir(), "none")
	defer func() { nodesFolder = was }()
	n := nodeSettingsOf(&fiojob.Nodes{CPUs: []int{0}})
	if cpus, err := n.within([]int{1}); err != nil || fmt.Sprint(cpus) != "[1]" {
		t.Errorf("%v, %v", cpus, err)
	}
}

// The kernel takes the policies, for memory and for the thread.
func TestMemoryPolicies(t *testing.T) {
	for _, nodes := range []fiojob.Nodes{
		{Policy: "default"}, {Policy: "local"}, {Policy: "prefer", Memory: []int{0}}, {Policy: "bind", Memory: []int{0}},
		{Policy: "interleave", MemoryAll: true},
	} {
		memory, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		settings := Settings{nodes: nodeSettingsOf(&nodes)}
		if err := settings.Bind(memory); err != nil {
			t.Errorf("%+v: %v", nodes, err)
		}
		const ofAddress = 2 // MPOL_F_ADDR
		var mode int32
		var mask nodeMask
		if _, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), uintptr(unsafe.Pointer(&mask)),
			fiojob.NodesMax, uintptr(unsafe.Pointer(&memory[0])), ofAddress, 0); errno != 0 {
			t.Errorf("%+v: %v", nodes, errno)
		}
		if want := int32(memoryPolicies[nodes.Policy]); mode != want {
			t.Errorf("%+v: the kernel says policy %d, want %d", nodes, mode, want)
		}
		if names := nodes.Policy != "default" && nodes.Policy != "local"; names != (mask[0] == 1) {
			t.Errorf("%+v: the kernel says nodes %x", nodes, mask[0])
		}
		if err := unix.Munmap(memory); err != nil {
			t.Fatal(err)
		}
	}
	n := nodeSettingsOf(&fiojob.Nodes{Policy: "bind", Memory: []int{900}})
	if err := n.setMemoryPolicy(); err == nil {
		t.Error("a node that no machine has is accepted")
	}
}
