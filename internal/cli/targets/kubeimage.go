package targets

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/image/container"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// imageMode lets others read an image: it has no secrets.
const imageMode = 0o644

// kubeImageOrder has the flags of kube image.
type kubeImageOrder struct {
	controller, json         bool
	program, arch, name, out string
}

// kubeImage is what kube image prints with --json.
type kubeImage struct {
	Path         string `json:"path"`
	Image        string `json:"image"` // its name
	Architecture string `json:"architecture"`
	Digest       string `json:"digest"` // of the configuration
	Bytes        int64  `json:"bytes"`
}

func newKubeImage(p *console.Process) *cobra.Command {
	var o kubeImageOrder
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Write a container image of the agent, or of bragg",
		Long: "Image writes a container image with bragg-agent alone, or with bragg for a Job, as an archive that docker load, podman\n" +
			"load, skopeo and ctr read. It needs none of them and no network. The same program gives the same bytes. Loads that run\n" +
			"other programs need an image of your own with these.",
		Example: "  bragg kube image -o bragg-agent.tar\n" +
			"  bragg kube image --controller -o bragg.tar\n" +
			"  skopeo copy docker-archive:bragg-agent.tar docker://registry.example.com/bragg-agent:1",
		Args: console.Between(0, 0),
		RunE: func(*cobra.Command, []string) error { return o.write(p) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.controller, "controller", false, "the image is of bragg, for kube install --job")
	f.StringVar(&o.program, "program", "", "program in the image (default: the agent shipped with bragg, or bragg itself)")
	f.StringVar(&o.arch, "arch", runtime.GOARCH, "CPU architecture of the nodes, for the agent shipped with bragg")
	f.StringVar(&o.name, "name", "", "name of the image with its tag (default: bragg-agent:VERSION or bragg:VERSION)")
	f.StringVarP(&o.out, "output", "o", "", "output file (default: bragg-agent.tar or bragg.tar)")
	console.JSONFlag(f, &o.json)
	return cmd
}

func (o kubeImageOrder) write(p *console.Process) (err error) {
	short, from := "bragg-agent", p.Path(o.program)
	if o.controller {
		short = "bragg"
	}
	switch {
	case o.program != "":
	case o.controller:
		from = p.Executable
	default:
		if from, err = guestAgent(p, o.arch); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	architecture, err := container.ArchitectureOf(text)
	if err != nil {
		return &diag.Error{Code: "kube-image", Exit: diag.ExitData, Message: fmt.Sprintf("program %q cannot be in an image", from), Err: err}
	}
	at := path.Join("/bin", short)
	i := container.Image{
		Name: cmp.Or(o.name, short+":"+tag(console.Version())), Architecture: architecture, Programs: map[string][]byte{at: text},
		Labels: map[string]string{"org.opencontainers.image.title": short, "org.opencontainers.image.version": console.Version()},
	}
	if !o.controller {
		i.Entrypoint = []string{at}
	}
	var b bytes.Buffer
	digest, err := container.Write(&b, i)
	if err != nil {
		return err
	}
	out := p.Path(cmp.Or(o.out, short+".tar"))
	if err := durable.WriteFile(out, b.Bytes(), imageMode); err != nil {
		return err
	}
	if o.json {
		return p.PrintJSON(kubeImage{Path: out, Image: i.Name, Architecture: architecture, Digest: digest, Bytes: int64(b.Len())})
	}
	_, err = fmt.Fprintf(p.Stdout, "Created %s (%s): image %s for linux/%s, %s\n", textio.Lines(out), unit.FormatBytes(int64(b.Len())), textio.Line(i.Name), architecture, digest)
	return err
}

// tag turns a version into the tag of an image.
func tag(version string) string {
	text := []byte(cmp.Or(version, "devel"))
	for i, c := range text {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' && i > 0 {
			continue
		}
		text[i] = '_'
	}
	return string(text)
}
