package targets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// NewImage returns the command image.
func NewImage(p *console.Process) *cobra.Command {
	return console.HoldsVerbs(&cobra.Command{
		Use:   "image",
		Short: "Build guest images and seeds",
	}, newImageBuild(p), newImageOVA(p), newImageSeed(p))
}

// buildOrder has the flags of image build.
type buildOrder struct {
	kernel, download, program, out string
	with                           []string
	json                           bool
}

// distributionFile is the default output of a build of a distribution.
const distributionFile = "debian.qcow2"

func newImageBuild(p *console.Process) *cobra.Command {
	var o buildOrder
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build a guest image: a kernel and the agent, or Debian with programs for loads",
		Long: "Build unpacks a Debian kernel package and creates a folder with the kernel, an initramfs with bragg-agent as\n" +
			"its only program, and image.json with their hashes and the kernel command line. Builds are reproducible. VMs\n" +
			"boot it by direct kernel boot, each with its own seed (bragg image seed).\n\n" +
			"The package is a file (--kernel) or is downloaded with apt-get (--download).\n\n" +
			"With --with it creates a cloud image of Debian instead, a qcow2 with cloud-init and these packages, from the\n" +
			"archives that apt of this machine reaches (Debian on amd64, as root, with mmdebstrap). FILE.json lists what is\n" +
			"in it. Providers give it the agent with the seed.",
		Example: "  bragg image build --download -o image\n" +
			"  bragg image build --kernel linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb -o image\n" +
			"  bragg image build --with postgresql,sysbench -o debian.qcow2",
		Args: console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := 0
			for _, name := range []string{"kernel", "download", "with"} {
				if cmd.Flags().Changed(name) {
					given++
				}
			}
			switch {
			case given != 1 || o.kernel == "" && o.download == "" && o.with == nil:
				return console.UsageError(cmd, "use either --kernel FILE, --download or --with PACKAGES")
			case o.with == nil:
				return buildImage(cmd.Context(), p, o)
			case o.program != "":
				return console.UsageError(cmd, "--with takes no --agent: each VM gets its agent with its seed")
			}
			if !cmd.Flags().Changed("output") {
				o.out = distributionFile
			}
			return buildDistribution(cmd.Context(), p, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kernel, "kernel", "", "Debian package with a kernel, such as linux-image-…-cloud-amd64_….deb")
	f.StringVar(&o.download, "download", "", "download the package of this name with apt-get; default name "+image.DefaultPackage)
	f.Lookup("download").NoOptDefVal = image.DefaultPackage
	f.StringSliceVar(&o.with, "with", nil, "packages of a Debian cloud image, such as postgresql,sysbench,iperf3")
	f.StringVar(&o.program, "agent", "", "agent binary (default: the one shipped with bragg for the architecture of the kernel)")
	f.StringVarP(&o.out, "output", "o", "image", "output folder; with --with a file, by default "+distributionFile)
	f.BoolVar(&o.json, "json", false, "print the manifest, or the recipe, as JSON")
	return cmd
}

func buildImage(ctx context.Context, p *console.Process, o buildOrder) error {
	dir := p.Path(o.out)
	if o.download != "" {
		scratch, err := os.MkdirTemp("", "bragg-kernel-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		if o.kernel, err = image.Download(ctx, o.download, scratch); err != nil {
			return err
		}
	}
	source := image.Source{Package: p.Path(o.kernel), FindAgent: func(architecture string) (string, error) { return guestAgent(p, architecture) }}
	if o.program != "" {
		source.Agent = p.Path(o.program)
	}
	m, err := image.Build(source, dir)
	if err != nil {
		return err
	}
	if o.json {
		return p.PrintJSON(m)
	}
	return printImage(p, m, dir)
}

func buildDistribution(ctx context.Context, p *console.Process, o buildOrder) error {
	path := p.Path(o.out)
	r, err := image.BuildDistribution(ctx, image.Distribution{With: o.with, Progress: p.Stderr}, path)
	if err != nil {
		return err
	}
	if o.json {
		return p.PrintJSON(r)
	}
	return printDistribution(p, r, path, "Copy it to the pool of a target, and name it as a template.")
}

func printDistribution(p *console.Process, r image.Recipe, path, next string) error {
	var t console.Table
	t.Add("Debian", fmt.Sprintf("%s, %d packages", r.Suite, len(r.Packages)))
	for _, one := range r.With {
		t.Add("with", one.Name+" "+one.Version)
	}
	t.Add("image", fmt.Sprintf("%s  sha256:%s", unit.FormatBytes(r.Image.Bytes), r.Image.SHA256))
	if err := t.Print(p.Stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "\nCreated %s, and %s with all packages. %s\n", textio.Lines(path),
		textio.Lines(filepath.Base(image.RecipeFile(path))), next)
	return err
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
	_, err := fmt.Fprintf(p.Stdout, "\nCreated %s. Each VM also needs a seed: bragg image seed --help\n", textio.Lines(dir))
	return err
}

// guestAgent finds the agent program that is shipped with bragg for VMs of that CPU architecture.
func guestAgent(p *console.Process, architecture string) (string, error) {
	return Program(p).Agent("linux/" + architecture)
}

// seedOrder has the flags of image seed.
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
		Short: "Create a cloud-init seed disk for a VM",
		Long: "Seed writes an ISO 9660 image with the label cidata, for images of \"bragg image build\" and for cloud images\n" +
			"(cloud-init NoCloud). It contains the name, network and machine-id of the VM and the certificates and private\n" +
			"key of the agent: keep it secret. The file is readable only by its owner.\n\n" +
			"Every VM needs a unique --instance-id. Without --address the VM uses DHCP.",
		Example: "  bragg image seed --vm db-1 --instance-id run7-db-1 --certificate db-1.pem --key db-1.key \\\n" +
			"      --authority run.pem --address 10.0.2.10/24 --gateway 10.0.2.1 -o db-1.iso",
		Args: console.Between(0, 0),
		RunE: func(*cobra.Command, []string) error { return makeSeed(p, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.vm, "vm", "", "name of the VM")
	f.StringVar(&o.instance, "instance-id", "", "unique for every VM ever created; the machine-id is derived from it")
	f.StringVar(&o.listen, "listen", agentListen, "listen address of the agent for the controller")
	f.StringVar(&o.metrics, "metrics-listen", "", "listen address for metrics; empty: off")
	f.StringVar(&o.address, "address", "", "address with its prefix, such as 10.0.2.10/24 (default: DHCP)")
	f.StringVar(&o.gateway, "gateway", "", "default gateway")
	f.StringVar(&o.mac, "mac", "", "MAC address of the interface (default: the first one)")
	f.StringVar(&o.certificate, "certificate", "", "file with the agent's certificate")
	f.StringVar(&o.key, "key", "", "file with the agent's key")
	f.StringVar(&o.authority, "authority", "", "file with the CA certificate of controllers")
	f.StringVar(&o.user, "user", "", "user to create in a cloud image")
	f.StringVar(&o.keys, "ssh-keys", "", "file with the SSH public keys of this user")
	f.StringVar(&o.program, "agent", "", "bragg-agent binary to include, for cloud images without it")
	f.StringVarP(&o.output, "output", "o", "", "output file")
	console.JSONFlag(f, &o.json)
	for _, name := range []string{"vm", "instance-id", "certificate", "key", "authority", "output"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// agentListen is the default listen address of agents of VMs.
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
	_, err = fmt.Fprintf(p.Stdout, "Created %s (%s): machine-id %s. It contains the agent's private key.\n", textio.Lines(p.Path(o.output)),
		unit.FormatBytes(int64(len(disk))), image.MachineID(o.instance))
	return err
}
