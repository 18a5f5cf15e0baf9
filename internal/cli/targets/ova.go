package targets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/image/ova"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// ovaOrder has the flags of image ova.
type ovaOrder struct {
	with         []string
	program, out string
	json         bool
}

// ovaFile is the default output.
const ovaFile = "bragg.ova"

func newImageOVA(p *console.Process) *cobra.Command {
	var o ovaOrder
	cmd := &cobra.Command{
		Use:   "ova [IMAGE]",
		Short: "Create an OVA for vSphere",
		Long: "OVA makes a template for vSphere: a cloud image of Debian with cloud-init, open-vm-tools, bragg-agent and the packages\n" +
			"of --with, from the archives that apt of this machine reaches (Debian on amd64, as root, with mmdebstrap). FILE.json\n" +
			"lists what is in it.\n\n" +
			"With IMAGE, a raw or qcow2 disk image with all that, it packs this one: without root, and with qemu-img for qcow2.\n" +
			"The same image gives the same OVA.\n\n" +
			"Name the OVA as a template of a target file: the first run imports it.",
		Example: "  sudo bragg image ova -o bragg.ova\n" +
			"  sudo bragg image ova --with postgresql,sysbench -o debian.ova\n" +
			"  bragg image ova my-template.qcow2 -o my-template.ova",
		Args: console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return buildOVA(cmd.Context(), p, o)
			}
			if cmd.Flags().Changed("with") || o.program != "" {
				return console.UsageError(cmd, "--with and --agent are for an image that is built: IMAGE is packed as it is")
			}
			return packOVA(cmd.Context(), p, o, args[0])
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.with, "with", nil, "further packages, such as postgresql,sysbench,iperf3")
	f.StringVar(&o.program, "agent", "", "agent binary (default: the one shipped with bragg)")
	f.StringVarP(&o.out, "output", "o", ovaFile, "output file")
	console.JSONFlag(f, &o.json)
	return cmd
}

func buildOVA(ctx context.Context, p *console.Process, o ovaOrder) error {
	var err error
	program := p.Path(o.program)
	if o.program == "" {
		if program, err = guestAgent(p, "amd64"); err != nil {
			return err
		}
	}
	path := p.Path(o.out)
	r, err := image.BuildDistribution(ctx, image.Distribution{With: o.with, Progress: p.Stderr, OVA: program}, path)
	if err != nil {
		return err
	}
	if o.json {
		return p.PrintJSON(r)
	}
	return printDistribution(p, r, path, "Name it as a template of a target file: the first run imports it.")
}

func packOVA(ctx context.Context, p *console.Process, o ovaOrder, file string) error {
	path := p.Path(o.out)
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if err := ova.Convert(ctx, ova.Machine{Name: name}, p.Path(file), path); err != nil {
		return err
	}
	f, err := os.Stat(path)
	if err != nil {
		return err
	}
	if o.json {
		return p.PrintJSON(map[string]any{"file": path, "bytes": f.Size()})
	}
	_, err = fmt.Fprintf(p.Stdout, "Created %s (%s). Name it as a template of a target file: the first run imports it.\n", textio.Lines(path), unit.FormatBytes(f.Size()))
	return err
}
