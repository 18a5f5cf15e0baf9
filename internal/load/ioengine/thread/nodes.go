package thread

import (
	"fmt"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// nodeSettings say which memory nodes (NUMA) a lane's threads run on and take memory from; the zero value is any. Lists are
// strings so that settings can be compared.
type nodeSettings struct {
	cpus      string
	cpusAll   bool
	policy    string
	memory    string
	memoryAll bool
}

func nodeSettingsOf(n *fiojob.Nodes) nodeSettings {
	return nodeSettings{packed(n.CPUs), n.CPUsAll, n.Policy, packed(n.Memory), n.MemoryAll}
}

// String is what a message about threads says of nodes.
func (n *nodeSettings) String() string {
	text := ""
	if n.cpusAll || n.cpus != "" {
		text = fmt.Sprintf(" of memory nodes %s", nodesText(n.cpusAll, n.cpus))
	}
	if n.policy != "" {
		text += fmt.Sprintf(", memory %s:%s", n.policy, nodesText(n.memoryAll, n.memory))
	}
	return text
}

func nodesText(all bool, list string) string {
	if all {
		return "all"
	}
	return fmt.Sprint(unpacked(list))
}
