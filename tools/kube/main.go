// Kube is the control plane and the kubelet of Kubernetes in one program, for tests: the components link mostly the same packages,
// so that one program is built in a third of the time and takes a fifth of the space of five. It is what its first argument or its
// own name says: "kube kubelet --config …" or a link to it named kubelet.
//
// It is a module of its own so that the program under test depends on none of this. "make deps-kube" builds it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // for schedules of CronJobs

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // for logs in JSON
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // for metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// A component is one of the programs. Its command is made only when it runs: making one registers flags and feature gates that others
// register too.
type component struct {
	name string
	make func() *cobra.Command
}

var components = []component{
	{"kube-apiserver", apiserver.NewAPIServerCommand},
	{"kube-controller-manager", controllermanager.NewControllerManagerCommand},
	{"kube-scheduler", func() *cobra.Command { return scheduler.NewSchedulerCommand() }},
	{"kubelet", func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }},
	{"kubectl", cmd.NewDefaultKubectlCommand},
	{"simulated-kubelets", newSimulatedKubelets},
	{"csi-driver", newDriver},
}

func main() {
	os.Args[0] = filepath.Base(os.Args[0])
	if find(os.Args[0]) == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:]
	}
	chosen := find(os.Args[0])
	if chosen == nil {
		names := make([]string, len(components))
		for i, c := range components {
			names[i] = c.name
		}
		fmt.Fprintf(os.Stderr, "kube: the first argument must be one of %s\n", strings.Join(names, ", "))
		os.Exit(64)
	}
	os.Exit(cli.Run(chosen.make()))
}

func find(name string) *component {
	i := slices.IndexFunc(components, func(c component) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return &components[i]
}
