package fiojob_test

import (
	"reflect"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

func TestCommandPriorities(t *testing.T) {
	for _, c := range []struct {
		text string
		want fiojob.CommandPriority
	}{
		{"cmdprio_percentage=10", fiojob.CommandPriority{Percent: [2]int{10, 10}}},
		{"cmdprio_percentage=10,0\ncmdprio_class=2,3\ncmdprio=7", fiojob.CommandPriority{
			Percent: [2]int{10, 0}, Class: [2]int{2, 3}, Level: [2]int{7, 7}}},
		{"cmdprio_bssplit=64k/40/1/0:4k/20,1m/60", fiojob.CommandPriority{Split: [2][]syntax.PrioritySplit{
			{{Bytes: 65536, Percent: 40, Class: 1}, {Bytes: 4096, Percent: 20, Class: -1, Level: -1}},
			{{Bytes: 1 << 20, Percent: 60, Class: -1, Level: -1}}}}},
	} {
		file, list := fiojob.Parse("job.fio", "[a]\nfilename=/dev/sdb\nioengine=libaio\n"+c.text+"\n", fiojob.Options{})
		if list.HasErrors() {
			t.Errorf("%s: %v", c.text, list)
			continue
		}
		if got := file.Jobs()[0].CommandPriority; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.text, got, c.want)
		}
	}
	for _, text := range []string{
		"cmdprio_percentage=101", "cmdprio_class=4", "cmdprio=8", "cmdprio_percentage=1,2,3", "cmdprio_bssplit=4k", "cmdprio_bssplit=4k/10/1",
		"cmdprio_bssplit=4k/101", "cmdprio_bssplit=4k/60:4k/60", "cmdprio_bssplit=4k/10/4/0", "cmdprio_bssplit=/10", "cmdprio_bssplit=4k/-1",
		"cmdprio_percentage=10\ncmdprio_bssplit=4k/10", "cmdprio_bssplit=4k/1:", "cmdprio_bssplit=4k/1,4k/1,4k/1",
	} {
		if _, list := fiojob.Parse("job.fio", "[a]\nfilename=/dev/sdb\n"+text+"\n", fiojob.Options{}); !list.HasErrors() {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, list := fiojob.Parse("job.fio", "[a]\nfilename=/dev/sdb\ncmdprio=3\n", fiojob.Options{}); len(list) != 1 || list.HasErrors() {
		t.Errorf("a priority that no operation has: %v", list)
	}
}

func TestMemoryNodes(t *testing.T) {
	for text, want := range map[string]fiojob.Nodes{
		"numa_cpu_nodes=0-1,3":                              {CPUs: []int{0, 1, 3}},
		"numa_cpu_nodes=all\nnuma_mem_policy=local":         {CPUsAll: true, Policy: "local"},
		"numa_mem_policy=bind:0,2":                          {Policy: "bind", Memory: []int{0, 2}},
		"numa_mem_policy=interleave:all":                    {Policy: "interleave", MemoryAll: true},
		"numa_mem_policy=prefer:1":                          {Policy: "prefer", Memory: []int{1}},
		"numa_mem_policy=prefer:1\nnuma_mem_policy=default": {Policy: "default"},
	} {
		file, list := fiojob.Parse("job.fio", "[a]\nfilename=/dev/sdb\n"+text+"\n", fiojob.Options{})
		if list.HasErrors() {
			t.Errorf("%s: %v", text, list)
			continue
		}
		if got := file.Jobs()[0].Control.Nodes; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{
		"numa_cpu_nodes=1-0", "numa_cpu_nodes=x", "numa_cpu_nodes=", "numa_cpu_nodes=-1", "numa_cpu_nodes=1024", "numa_mem_policy=near:0",
		"numa_mem_policy=prefer:0,1", "numa_mem_policy=prefer", "numa_mem_policy=bind", "numa_mem_policy=local:0", "numa_mem_policy=bind:",
		"numa_mem_policy=prefer:all",
	} {
		if _, list := fiojob.Parse("job.fio", "[a]\nfilename=/dev/sdb\n"+text+"\n", fiojob.Options{}); !list.HasErrors() {
			t.Errorf("%q is accepted", text)
		}
	}
}
