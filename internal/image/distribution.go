package image

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/image/ova"
	"github.com/braggdev/bragg/internal/textio"
)

// Distribution is a cloud image of Debian with programs that loads need.
type Distribution struct {
	With     []string  // names of packages, beside those of every cloud image
	Progress io.Writer // one line for each part of the work
	// OVA makes an OVA for vSphere instead of a qcow2, with this program as the agent: VMs there get their identity from
	// their settings, which have no room for a program.
	OVA string
}

// toolsPackage reports the addresses of a guest to vCenter and reads its settings.
const toolsPackage = "open-vm-tools"

// Recipe describes such an image: the content of RecipeFile.
type Recipe struct {
	Format   int       `json:"format"`
	Suite    string    `json:"suite"` // release of Debian: "bookworm"
	With     []Package `json:"with"`  // requested packages
	Packages []Package `json:"packages"`
	Image    File      `json:"image"`
}

// Package is an installed package.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// RecipeFile is the path of the recipe of an image.
func RecipeFile(image string) string { return image + ".json" }

//go:embed debian.sh
var debianScript string

const (
	packagesMax      = 64
	distributionMost = time.Hour // for slow archives
	saidBytesMax     = 8 << 10
)

var packagePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,99}$`)

// distributionPrograms make an image, with the packages of Debian that have them.
var distributionPrograms = [][2]string{{"mmdebstrap", "mmdebstrap"}, {"mkfs.ext4", "e2fsprogs"}, {"sfdisk", "fdisk"}, {"qemu-img", "qemu-utils"},
	{"unshare", "util-linux"}, {"apt-cache", "apt"}, {"dpkg", "dpkg"}}

// BuildDistribution makes a cloud image (qcow2, or OVA) at a path, and its recipe beside it. Packages are those that this machine's apt reaches. It works
// in a folder beside the image, which is removed at the end; one that a killed build left is replaced by the next build of the same path.
func BuildDistribution(ctx context.Context, d Distribution, path string) (Recipe, error) {
	if d.OVA != "" && !slices.Contains(d.With, toolsPackage) {
		d.With = append(slices.Clone(d.With), toolsPackage)
	}
	suite, err := d.check(ctx)
	if err != nil {
		return Recipe{}, err
	}
	work := path + ".work"
	release, err := makeWork(work)
	if err != nil {
		return Recipe{}, err
	}
	defer release()
	if err := d.run(ctx, work, suite); err != nil {
		return Recipe{}, err
	}
	if err := d.pack(ctx, work, path); err != nil {
		return Recipe{}, err
	}
	r, err := d.recipe(work, suite)
	if err != nil {
		return Recipe{}, err
	}
	r.Image.Name = filepath.Base(path)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return Recipe{}, err
	}
	if err := os.Remove(RecipeFile(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Recipe{}, fmt.Errorf("replace image: %w", err)
	}
	if err := os.Rename(filepath.Join(work, workImage), path); err != nil {
		return Recipe{}, fmt.Errorf("make image: %w", err)
	}
	return r, durable.WriteFile(RecipeFile(path), append(text, '\n'), 0o644)
}

func unable(code, hint, format string, args ...any) error {
	return &diag.Error{Code: code, Exit: diag.ExitUnavailable, Message: "build an image of a distribution: " + fmt.Sprintf(format, args...), Hint: hint}
}

// check finds out before any work whether the image can be made, and returns the release of Debian.
func (d Distribution) check(ctx context.Context) (suite string, err error) {
	if len(d.With) > packagesMax {
		return "", &diag.Error{Code: "bad-package-name", Exit: diag.ExitUsage, Message: fmt.Sprintf("build an image: %d packages, at most %d", len(d.With), packagesMax)}
	}
	for _, name := range d.With {
		if !packagePattern.MatchString(name) {
			return "", &diag.Error{Code: "bad-package-name", Exit: diag.ExitUsage, Message: fmt.Sprintf("build an image: %q is not the name of a package", name),
				Hint: "give names of Debian with commas between them: --with postgresql,sysbench"}
		}
	}
	var missing, from []string
	for _, p := range distributionPrograms {
		if _, err := exec.LookPath(p[0]); err != nil {
			missing, from = append(missing, p[0]), append(from, p[1])
		}
	}
	release, _ := os.ReadFile("/etc/os-release")
	suite = field(string(release), "VERSION_CODENAME")
	switch architecture, _ := exec.CommandContext(ctx, "dpkg", "--print-architecture").Output(); {
	case field(string(release), "ID") != "debian" || suite == "":
		return "", unable("not-debian", "run it on a machine with Debian, such as a container, or use a cloud image of the distribution's own", "this machine's apt has no archive of Debian")
	case len(missing) > 0:
		return "", unable("program-missing", "apt-get install "+strings.Join(from, " "), "no %s on this machine", strings.Join(missing, ", "))
	case strings.TrimSpace(string(architecture)) != "amd64":
		return "", unable("bad-architecture", "", "it is made on amd64 only, and this machine is %s", strings.TrimSpace(string(architecture)))
	case os.Geteuid() != 0:
		return "", unable("not-root", "run it with sudo", "packages are installed in a folder as root")
	}
	return suite, d.reachable(ctx)
}

// field returns a value of /etc/os-release.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key == name {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// reachable wants a version to install of each package.
func (d Distribution) reachable(ctx context.Context) error {
	if len(d.With) == 0 {
		return nil
	}
	policy := exec.CommandContext(ctx, "apt-cache", append([]string{"policy"}, d.With...)...)
	policy.Env = append(os.Environ(), "LC_ALL=C")
	out, err := policy.Output()
	if err != nil {
		return unable("no-packages", "apt-get update", "apt-cache: %v", err)
	}
	has, name := map[string]bool{}, ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if title, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
			name = title
		} else if version, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate: "); ok {
			has[name] = version != "(none)"
		}
	}
	unknown := slices.DeleteFunc(slices.Clone(d.With), func(name string) bool { return has[name] })
	if len(unknown) > 0 {
		return unable("package-unknown", "apt-cache search finds names; apt-get update reads the archives again", "apt has no package %s", strings.Join(unknown, ", "))
	}
	return nil
}

// run runs the script in namespaces that end with this process.
func (d Distribution) run(ctx context.Context, work, suite string) error {
	ctx, cancel := context.WithTimeout(ctx, distributionMost)
	defer cancel()
	work, err := filepath.Abs(work)
	if err != nil {
		return err
	}
	agent := d.OVA
	if agent != "" {
		if agent, err = filepath.Abs(agent); err != nil {
			return err
		}
	}
	c := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", debianScript, "debian.sh", work, suite, strings.Join(d.With, ","), agent)
	c.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "TMPDIR="+work)
	said := &textio.Tail{MaxBytes: saidBytesMax}
	c.Stdout, c.Stderr, c.WaitDelay = io.MultiWriter(d.progress(), said), said, 10*time.Second
	runtime.LockOSThread() // the kernel kills it when the thread that started it ends
	defer runtime.UnlockOSThread()
	dieWithThis(c)
	if err := c.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return unable("no-image", "", "%v: %s", err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return nil
}

// workImage is the finished image in the folder of a build.
const workImage = "image.qcow2"

// pack makes an OVA of the disk that the script made for it.
func (d Distribution) pack(ctx context.Context, work, path string) error {
	if d.OVA == "" {
		return nil
	}
	fmt.Fprintln(d.progress(), "packing the OVA")
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return ova.Convert(ctx, ova.Machine{Name: name}, filepath.Join(work, "disk"), filepath.Join(work, workImage))
}

func (d Distribution) progress() io.Writer {
	return cmp.Or(d.Progress, io.Discard)
}

// recipe reads what the script made.
func (d Distribution) recipe(work, suite string) (Recipe, error) {
	r := Recipe{Format: Format, Suite: suite, With: []Package{}}
	text, err := os.ReadFile(filepath.Join(work, "packages"))
	if err != nil {
		return r, fmt.Errorf("read the packages of the image: %w", err)
	}
	for line := range bytes.Lines(text) {
		name, version, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		r.Packages = append(r.Packages, Package{name, version})
		if slices.Contains(d.With, name) {
			r.With = append(r.With, Package{name, version})
		}
	}
	f, err := os.Open(filepath.Join(work, workImage))
	if err != nil {
		return r, err
	}
	defer f.Close()
	r.Image, err = describe(workImage, f)
	return r, err
}
