package targets

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// NewImage is the verb image.
func NewImage(p *console.Process) *cobra.Command {
	return console.HoldsVerbs(&cobra.Command{
		Use:   "image",
		Short: "Make what VMs are started from: a small system with the agent, and seeds",
	}, newImageBuild(p), newImageSeed(p))
}

func newImageBuild(p *console.Process) *cobra.Command {
	var kernel, download, program, out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build a system that boots in seconds: a kernel and the agent, nothing else",
		Long: "Build unpacks a Debian kernel package and makes a folder of it: the kernel, an initramfs in which bragg-agent\n" +
			"is the only program, and image.json with their hashes and the kernel's command line. The same files give the\n" +
			"same bytes. VMs are started from it by direct kernel boot, each with a seed (bragg image seed).\n\n" +
			"The package is a file (--kernel), or is fetched with the machine's apt-get (--download).",
		Example: "  bragg image build --download -o image\n" +
			"  bragg image build --kernel linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb -o image",
		Args: console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (kernel == "") == (download == "") {
				return console.UsageError(cmd, "give either --kernel FILE or --download")
			}
			dir := p.Path(out)
			if download != "" {
				scratch, err := os.MkdirTemp("", "bragg-kernel-*")
				if err != nil {
					return err
				}
				defer os.RemoveAll(scratch)
				if kernel, err = image.Download(cmd.Context(), download, scratch); err != nil {
					return err
				}
			}
			source := image.Source{Package: p.Path(kernel), FindAgent: func(architecture string) (string, error) { return guestAgent(p, architecture) }}
			if program != "" {
				source.Agent = p.Path(program)
			}
			m, err := image.Build(source, dir)
			if err != nil {
				return err
			}
			if asJSON {
				return p.PrintJSON(m)
			}
			return printImage(p, m, dir)
		},
	}
	f := cmd.Flags()
	f.StringVar(&kernel, "kernel", "", "Debian package with a kernel, such as linux-image-…-cloud-amd64_….deb")
	f.StringVar(&download, "download", "", "fetch the package of this name with apt-get; without a name "+image.DefaultPackage)
	f.Lookup("download").NoOptDefVal = image.DefaultPackage
	f.StringVar(&program, "agent", "", "the agent's program (default: that for the kernel's processors which comes with bragg)")
	f.StringVarP(&out, "output", "o", "image", "folder to make")
	f.BoolVar(&asJSON, "json", false, "print the manifest as JSON")
	return cmd
}

func printImage(p *console.Process, m image.Manifest, dir string) error {
	var t console.Table
	t.Add("kernel", fmt.Sprintf("Linux %s, %s, from %s", m.Release, m.Architecture, m.Package.Name))
	t.Add("agent", fmt.Sprintf("%s, %s", m.AgentVersion, unit.FormatBytes(m.Agent.Bytes)))
	for _, f := range []image.File{m.Kernel, m.Initramfs} {
		t.Add(f.Name, fmt.Sprintf("%s  sha256:%s", unit.FormatBytes(f.Bytes), f.SHA256))
	}
	t.Add("command line", m.CommandLine)
	if err := t.Print(p.Stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "\nMade %s. A VM needs a seed beside it: bragg image seed --help\n", textio.Lines(dir))
	return err
}

// guestAgent finds the agent's program that comes with ours, for VMs with processors of that architecture.
func guestAgent(p *console.Process, architecture string) (string, error) {
	return Program(p).Agent("linux/" + architecture)
}

// seedOrder is what the flags of image seed say.
type seedOrder struct {
	vm, instance, listen, metrics string
	address, gateway, mac         string
	certificate, key, authority   string
	user, keys, program, output   string
	json                          bool
}

func newImageSeed(p *console.Process) *cobra.Command {
	var o seedOrder
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Make the small disk that tells a VM who it is",
		Long: "Seed writes an ISO 9660 image with the label cidata: for systems of \"bragg image build\" and, with cloud-init's\n" +
			"NoCloud source, for cloud images. It holds the VM's name, network, machine-id and the agent's certificates and\n" +
			"key, so it is as secret as the key; the file is readable by its owner only.\n\n" +
			"Every VM needs an --instance-id of its own. Without --address the VM asks by DHCP.",
		Example: "  bragg image seed --vm db-1 --instance-id run7-db-1 --certificate db-1.pem --key db-1.key \\\n" +
			"      --authority run.pem --address 10.0.2.10/24 --gateway 10.0.2.1 -o db-1.iso",
		Args: console.Between(0, 0),
		RunE: func(*cobra.Command, []string) error { return makeSeed(p, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.vm, "vm", "", "name of the VM")
	f.StringVar(&o.instance, "instance-id", "", "another one for every VM that was ever made; the machine-id derives from it")
	f.StringVar(&o.listen, "listen", agentListen, "where the agent listens for the controller")
	f.StringVar(&o.metrics, "metrics-listen", "", "where the agent offers metrics; empty: nowhere")
	f.StringVar(&o.address, "address", "", "address with its prefix, such as 10.0.2.10/24 (default: DHCP)")
	f.StringVar(&o.gateway, "gateway", "", "router for other networks")
	f.StringVar(&o.mac, "mac", "", "hardware address of the interface meant (default: the first one)")
	f.StringVar(&o.certificate, "certificate", "", "file with the agent's certificate")
	f.StringVar(&o.key, "key", "", "file with the agent's key")
	f.StringVar(&o.authority, "authority", "", "file with the certificate of the authority that controllers come from")
	f.StringVar(&o.user, "user", "", "user to make in a cloud image")
	f.StringVar(&o.keys, "ssh-keys", "", "file with the public keys that let this user in")
	f.StringVar(&o.program, "agent", "", "bragg-agent to put on the seed, for cloud images that do not hold it")
	f.StringVarP(&o.output, "output", "o", "", "file to write")
	console.JSONFlag(f, &o.json)
	for _, name := range []string{"vm", "instance-id", "certificate", "key", "authority", "output"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// agentListen is where agents of VMs listen unless something else is said.
const agentListen = ":7401"

func makeSeed(p *console.Process, o seedOrder) error {
	g := image.Guest{
		InstanceID: o.instance, VM: o.vm, Listen: o.listen, MetricsListen: o.metrics, User: o.user,
	}
	if o.address != "" || o.mac != "" || o.gateway != "" {
		g.Network = []image.Link{{MAC: o.mac, Address: o.address, Gateway: o.gateway}}
	}
	var keys []byte
	for _, f := range []struct {
		path string
		to   *[]byte
	}{
		{o.certificate, &g.Identity.Certificate}, {o.key, &g.Identity.Key}, {o.authority, &g.Identity.Authority}, {o.keys, &keys}, {o.program, &g.Program},
	} {
		if f.path == "" {
			continue
		}
		text, err := os.ReadFile(p.Path(f.path))
		if err != nil {
			return &diag.Error{Code: "unreadable-file", Message: "write seed", Err: err, Exit: diag.ExitData}
		}
		*f.to = text
	}
	for line := range strings.Lines(string(keys)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			g.Keys = append(g.Keys, line)
		}
	}
	disk, err := image.Seed(g)
	if err != nil {
		return err
	}
	if err := image.WriteSecret(p.Path(o.output), disk); err != nil {
		return err
	}
	if o.json {
		return p.PrintJSON(map[string]any{"file": p.Path(o.output), "bytes": len(disk), "machine_id": image.MachineID(o.instance)})
	}
	_, err = fmt.Fprintf(p.Stdout, "Made %s (%s): machine-id %s. It holds the agent's key.\n", textio.Lines(p.Path(o.output)),
		unit.FormatBytes(int64(len(disk))), image.MachineID(o.instance))
	return err
}
