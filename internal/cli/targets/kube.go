package targets

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/target/kube/rights"
)

// NewKube returns the command kube.
func NewKube(p *console.Process) *cobra.Command {
	return console.HoldsVerbs(&cobra.Command{
		Use:   "kube",
		Short: "Print manifests and write container images for Kubernetes",
	}, newKubeInstall(p), newKubeImage(p))
}

// kubeInstall has the flags of kube install.
type kubeInstall struct {
	rights.Install
	job    rights.Job
	target string // file
}

func newKubeInstall(p *console.Process) *cobra.Command {
	var i kubeInstall
	cmd := &cobra.Command{
		Use:   "install [flags] [-- ARGUMENT...]",
		Short: "Print the objects that a run in a namespace needs",
		Long: "Install prints a Namespace, a ServiceAccount and a Role with the rights of the provider kubernetes, as YAML for\n" +
			"kubectl apply. It applies nothing and needs no cluster. With --job it adds a Job that runs a scenario, its target file\n" +
			"and a volume for its bundle; ARGUMENTs after -- are those of bragg run.",
		Example: "  bragg kube install --namespace bench > bragg.yml\n" +
			"  bragg kube install --namespace bench --nodes | kubectl apply -f -\n" +
			"  bragg kube install --namespace bench --nodes --job four_corners --image registry.example.com/bragg:1 \\\n" +
			"      --agent-image registry.example.com/bragg-agent:1 --pool fast -- --rehearse 60s --set vms_per_node=2\n" +
			"  bragg kube install --namespace bench --nodes --job oltp --image registry.example.com/bragg:1 --target cluster.yml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := i.read(cmd, p, args); err != nil {
				return err
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
	f.StringVar(&i.job.Scenario, "job", "", "add a Job that runs this `SCENARIO`, with the ARGUMENTs after --")
	f.StringVar(&i.job.Image, "image", "", "container image with bragg, for the Job")
	f.StringVar(&i.job.AgentImage, "agent-image", "", "container image of agents, or what VMs of KubeVirt boot, for the Job")
	f.StringVar(&i.job.Class, "pool", "", "storage class of disks, for the Job")
	f.StringVar(&i.target, "target", "", "target `FILE` of the Job, in place of --agent-image, --pool and --kind")
	f.StringVar(&i.job.RunsClass, "runs-pool", "", "storage class of the volume with the Job's bundle")
	f.StringVar(&i.job.RunsSize, "runs-size", "", "size of that volume (default 10Gi)")
	return cmd
}

// read completes what the flags say, and checks it.
func (i *kubeInstall) read(cmd *cobra.Command, p *console.Process, args []string) error {
	if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
		return console.UsageError(cmd, "unexpected argument %q: those of bragg run follow --", args[0])
	}
	if i.job.Scenario == "" {
		for _, name := range []string{"image", "agent-image", "pool", "target", "runs-pool", "runs-size"} {
			if cmd.Flags().Changed(name) {
				return console.UsageError(cmd, "--%s is of the Job, and --job is missing", name)
			}
		}
		if len(args) > 0 {
			return console.UsageError(cmd, "arguments of bragg run are of the Job, and --job is missing")
		}
		return i.known()
	}
	if i.job.Image == "" {
		return console.UsageError(cmd, "--job needs --image, a container image with bragg")
	}
	i.Job, i.job.Arguments = &i.job, args
	if err := i.runs(cmd, args); err != nil {
		return err
	}
	if i.target != "" {
		if cmd.Flags().Changed("kind") {
			return console.UsageError(cmd, "the kind of VMs is in the target file")
		}
		if err := i.readTarget(p.Path(i.target)); err != nil {
			return err
		}
	}
	return i.known()
}

// runs checks the arguments of bragg run as far as that does without a target.
func (i *kubeInstall) runs(cmd *cobra.Command, args []string) error {
	run, _, err := cmd.Root().Find([]string{"run"})
	if err != nil {
		return err
	}
	if err := run.ParseFlags(args); err != nil {
		return console.UsageError(cmd, "argument of bragg run: %v", err)
	}
	for _, name := range []string{"target", "runs"} {
		if run.Flags().Changed(name) {
			return console.UsageError(cmd, "argument --%s of bragg run is set by the Job", name)
		}
	}
	return nil
}

// readTarget takes a target file as the Job's, if a pod can use it.
func (i *kubeInstall) readTarget(path string) error {
	c, err := targetbuiltin.Load(path)
	if err != nil {
		return err
	}
	bad := func(what string) error {
		return &diag.Error{
			Code: "kube-job-target", Exit: diag.ExitData, Message: fmt.Sprintf("target file %q: %s", i.target, what),
			Hint: "in a Job, the target is the namespace and the cluster of its pod, with the rights of its service account",
		}
	}
	switch {
	case c.Provider != "kubernetes":
		return bad("provider " + c.Provider + ", want kubernetes")
	case c.Endpoint != "" || c.Options["kubeconfig"] != "" || c.Options["context"] != "":
		return bad("a Job uses no endpoint, kubeconfig or context")
	case c.Options["namespace"] != "" && c.Options["namespace"] != i.Namespace:
		return bad(fmt.Sprintf("namespace %q, and --namespace is %q", c.Options["namespace"], i.Namespace))
	}
	text, err := os.ReadFile(path)
	i.job.Target, i.Kind = string(text), cmp.Or(c.Options["kind"], rights.KindPod)
	return err
}

// known checks the kind of VMs.
func (i *kubeInstall) known() error {
	if slices.Contains(rights.Kinds(), i.Kind) {
		return nil
	}
	return &diag.Error{
		Code: "usage", Exit: diag.ExitUsage, Message: fmt.Sprintf("unknown kind of VMs %q", i.Kind), Hint: "known: " + strings.Join(rights.Kinds(), ", "),
	}
}
