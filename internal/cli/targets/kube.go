package targets

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/rights"
)

// NewKube returns the command kube.
func NewKube(p *console.Process) *cobra.Command {
	return console.HoldsVerbs(&cobra.Command{
		Use:   "kube",
		Short: "Print manifests and write container images for Kubernetes",
	}, newKubeInstall(p), newKubeImage(p))
}

func newKubeInstall(p *console.Process) *cobra.Command {
	i := rights.Install{Kind: rights.KindPod}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Print the objects that a run in a namespace needs",
		Long: "Install prints a Namespace, a ServiceAccount and a Role with the rights of the provider kubernetes, as YAML for\n" +
			"kubectl apply. It applies nothing and needs no cluster.",
		Example: "  bragg kube install --namespace bench > bragg.yml\n" +
			"  bragg kube install --namespace bench --nodes | kubectl apply -f -\n" +
			"  bragg kube install --namespace bench --nodes --job four_corners --image registry.example.com/bragg:1 \\\n" +
			"      --agent-image registry.example.com/bragg-agent:1 --pool fast",
		Args: console.Between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			known := false
			for _, kind := range rights.Kinds() {
				known = known || kind == i.Kind
			}
			if !known {
				return &diag.Error{
					Code: "usage", Exit: diag.ExitUsage, Message: fmt.Sprintf("unknown kind of VMs %q", i.Kind), Hint: "known: " + strings.Join(rights.Kinds(), ", "),
				}
			}
			if i.Scenario == "" && i.Image != "" {
				return &diag.Error{Code: "usage", Exit: diag.ExitUsage, Message: "--image is of the Job, and --job is missing"}
			}
			if i.Scenario != "" && i.Image == "" {
				return &diag.Error{Code: "usage", Exit: diag.ExitUsage, Message: "--job needs --image, a container image with bragg"}
			}
			text, err := i.Manifests()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.Stdout, text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&i.Namespace, "namespace", "bragg", "namespace of the VMs")
	f.StringVar(&i.Account, "account", "bragg", "name of the ServiceAccount")
	f.StringVar(&i.Kind, "kind", rights.KindPod, "kind of VMs: "+strings.Join(rights.Kinds(), " or "))
	f.BoolVar(&i.Nodes, "nodes", false, "add a ClusterRole that lists nodes and storage classes")
	f.BoolVar(&i.Drain, "maintenance", false, "add a ClusterRole that drains nodes")
	f.BoolVar(&i.Metrics, "metrics", false, "add the rights to read the metrics of nodes and VMs, which reach beyond the namespace")
	f.StringVar(&i.Scenario, "job", "", "add a Job that runs this `SCENARIO`")
	f.StringVar(&i.Image, "image", "", "container image with bragg, for the Job")
	f.StringVar(&i.AgentImage, "agent-image", "", "container image of agents, or what VMs of KubeVirt boot, for the Job")
	f.StringVar(&i.Class, "pool", "", "storage class of disks, for the Job")
	return cmd
}
