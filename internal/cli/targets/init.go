package targets

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/textio"
)

// initTarget is the data from which `targets init` writes a target file.
type initTarget struct {
	provider, name  string
	nodes           []string // [ID=]ADDRESS; for local: one number
	pool, network   string
	addresses       string
	templates, bmcs []string
	bmcUser         string
	bmcSecret       string
	power           bool

	endpoint, fingerprint string // of a platform's management
	user, secret          string
	options               []string // NAME=VALUE
}

func newTargetsInit(p *console.Process) *cobra.Command {
	var t initTarget
	var runs string
	var noCheck, asJSON bool
	cmd := &cobra.Command{
		Use:   "init FILE",
		Short: "Create and check a target file",
		Long: "Init writes a commented target file for this machine (local), SSH hosts (ssh), libvirt hosts (libvirt) or a\n" +
			"cluster (vsphere, nutanix, kubernetes) and checks it like bragg targets check. On a terminal it prompts for missing\n" +
			"values. It never overwrites a file.\n\n" +
			"The file contains no secrets: --secret and --bmc-secret give their location.",
		Example: "  bragg targets init lab.yml\n" +
			"  bragg targets init hosts.yml --provider ssh --node left=root@10.0.0.11 --node right=root@10.0.0.12 --pool /mnt/nvme\n" +
			"  bragg targets init rack.yml --provider libvirt --node left=qemu+ssh://root@10.0.0.11/system --template ubuntu1604=debian-12.qcow2 \\\n" +
			"      --bmc left=ipmi:10.0.1.11 --bmc-user ADMIN --bmc-secret env:BMC_PASSWORD\n" +
			"  bragg targets init ahv.yml --provider nutanix --endpoint prism.example.com --user bragg --secret env:PRISM_PASSWORD \\\n" +
			"      --template ubuntu1604=bragg-debian-12",
		Args: console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.Terminal && !asJSON {
				if err := t.ask(p); err != nil {
					return err
				}
			}
			return writeTarget(cmd.Context(), p, &t, initWhere{args[0], p.RunsDirectory(runs), !noCheck, asJSON})
		},
	}
	f := cmd.Flags()
	f.StringVar(&t.provider, "provider", "", "local, ssh, libvirt, vsphere, nutanix or kubernetes")
	f.StringVar(&t.name, "name", "", "name of the target in reports (default: the provider)")
	f.StringArrayVar(&t.nodes, "node", nil, "`[ID=]ADDRESS` of a host (repeatable): USER@HOST:PORT, for libvirt also a URI; for local the number of nodes")
	f.StringVar(&t.pool, "pool", "", "storage for VM disks: a folder on every host (ssh), storage pool (libvirt), datastore, storage container or storage class")
	f.StringVar(&t.network, "network", "", "network of VMs; libvirt: or bridge:NAME (default: default); a port group (vsphere) or subnet (nutanix)")
	f.StringVar(&t.addresses, "addresses", "", "`RANGE` of static addresses, FIRST-LAST/PREFIX[,GATEWAY] (default dhcp)")
	f.StringArrayVar(&t.templates, "template", nil, "`NAME=IMAGE` of a template (repeatable)")
	f.StringVar(&t.endpoint, "endpoint", "", "address of vCenter, Prism Central or the API server (kubernetes without it: the kubeconfig)")
	f.StringVar(&t.fingerprint, "fingerprint", "", "SHA-256 of the certificate of the endpoint")
	f.StringVar(&t.user, "user", "", "user at the endpoint")
	f.StringVar(&t.secret, "secret", "", "location of the user's password, or of the token: env:NAME, file:PATH or command:PROGRAM ARGUMENTS")
	f.StringArrayVar(&t.options, "option", nil, "`NAME=VALUE` of an option of the cluster's provider (repeatable)")
	f.StringArrayVar(&t.bmcs, "bmc", nil, "`ID=PROTOCOL:ADDRESS` of the BMC of a node, redfish or ipmi (repeatable)")
	f.StringVar(&t.bmcUser, "bmc-user", "", "user of the BMCs")
	f.StringVar(&t.bmcSecret, "bmc-secret", "", "location of the BMC password: env:NAME, file:PATH or command:PROGRAM ARGUMENTS")
	f.BoolVar(&t.power, "allow-node-power", false, "allow runs to cut the power of nodes")
	f.BoolVar(&noCheck, "no-check", false, "write the file without checking the target")
	console.JSONFlag(f, &asJSON)
	p.RunsFlag(f, &runs)
	return cmd
}

// initWhere selects where the text is written.
type initWhere struct {
	file, runs  string
	check, json bool
}

// writeTarget writes the file and checks the target. It never writes a file that could not be read back.
func writeTarget(ctx context.Context, p *console.Process, t *initTarget, where initWhere) error {
	text, err := t.text(where.file)
	if err != nil {
		return err
	}
	path := p.Path(where.file)
	if _, list := target.ParseConfig(path, []byte(text), targetbuiltin.Providers()); list.HasErrors() {
		return list.Err()
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &diag.Error{Code: "exists", Message: strconv.Quote(path) + " already exists", Exit: diag.ExitUsage,
			Hint: "choose another name, or check this file: " + textio.Shell("bragg", "targets", "check", where.file)}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	checked := checkedTarget{Target: path, Capabilities: []target.Capability{}, Problems: diag.List{}}
	if where.check {
		if checked, err = checkTarget(ctx, p, path, where.runs); err != nil {
			return err
		}
	}
	if where.json {
		if err := p.PrintJSON(checked); err != nil {
			return err
		}
	} else if err := printInitialised(p, checked, where); err != nil {
		return err
	}
	if checked.Problems.HasErrors() {
		return console.ExitWith(checkedCode(checked.Problems))
	}
	return nil
}

func printInitialised(p *console.Process, checked checkedTarget, where initWhere) error {
	fmt.Fprintf(p.Stdout, "wrote %s\n", textio.Lines(checked.Target))
	name := console.AsPath(where.file)
	next := "Next: " + textio.Shell("bragg", "plan", "four_corners", "--target", name)
	switch {
	case !where.check:
		next = "Next: " + textio.Shell("bragg", "targets", "check", name)
	case checked.Problems.HasErrors():
		console.PrintDiagnostics(p.Stderr, checked.Problems)
		next = "The target check failed. Edit the file, then: " + textio.Shell("bragg", "targets", "check", name)
	default:
		fmt.Fprintln(p.Stdout)
		if err := printChecked(p, checked); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.Stdout, "\n%s\n", next)
	return err
}

// ask prompts for values without a flag. An empty answer takes the default in brackets.
func (t *initTarget) ask(p *console.Process) error {
	lines := bufio.NewScanner(p.Stdin)
	question := func(text, byDefault string) (string, error) {
		if byDefault != "" {
			text += " [" + byDefault + "]"
		}
		fmt.Fprintf(p.Stderr, "%s: ", text)
		if !lines.Scan() {
			return "", errors.Join(lines.Err(), &diag.Error{Code: "no-answer", Message: "no answer to: " + text, Exit: diag.ExitUsage,
				Hint: "set it by a flag: bragg targets init --help"})
		}
		return cmp.Or(strings.TrimSpace(lines.Text()), byDefault), nil
	}
	var err error
	if t.provider == "" {
		if t.provider, err = question("Provider: local (this machine), ssh (hosts), libvirt (hosts with VMs), vsphere, nutanix, kubernetes", "ssh"); err != nil {
			return err
		}
	}
	if cluster, ok := platforms[t.provider]; ok {
		return t.askPlatform(cluster, question)
	}
	for len(t.nodes) == 0 && t.provider != "local" {
		text := "Hosts, as USER@HOST, separated by spaces"
		if t.provider == "libvirt" {
			text = "Hosts, as USER@HOST or qemu+ssh://USER@HOST/system, separated by spaces"
		}
		answer, err := question(text, "")
		if err != nil {
			return err
		}
		t.nodes = strings.Fields(answer)
	}
	if t.pool == "" && t.provider == "ssh" {
		t.pool, err = question("Folder on every host for VM disks", sshPoolDefault)
	}
	if t.pool == "" && t.provider == "libvirt" && err == nil {
		t.pool, err = question("Storage pool for VM disks", "default")
	}
	if len(t.templates) == 0 && t.provider == "libvirt" && err == nil {
		var image string
		if image, err = question("Image that VMs boot: a volume of the pool, or a folder of bragg image build", ""); image != "" {
			t.templates = []string{"ubuntu1604=" + image}
		}
	}
	return err
}
