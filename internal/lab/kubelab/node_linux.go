package kubelab

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/lab/cable"
)

// power is a node from power on to power off.
type power struct {
	init *exec.Cmd
	gone chan struct{} // closed when no process of it is left
}

func (d *description) nodeDir(name string) string { return filepath.Join(d.Dir, "nodes", name) }

func (d *description) nodeNumber(name string) (int, error) {
	i := slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("the cluster has no real node %q", name)
	}
	return i, nil
}

// powerOn starts a node and returns when the API server knows that this boot of it is ready.
func (k *keeper) powerOn(ctx context.Context, name string) error {
	if _, err := k.nodeNumber(name); err != nil {
		return err
	}
	k.mu.Lock()
	on := k.nodes[name] != nil
	k.mu.Unlock()
	if on {
		return nil
	}
	boot, err := k.furnishNode(name)
	if err != nil {
		return err
	}
	progress, err := k.startNode(name)
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(progress).ReadString('\n')
	if err = errors.Join(err, progress.Close()); err != nil {
		return errors.Join(fmt.Errorf("node %q does not boot: %q: %w", name, line, err), k.powerOff(name))
	}
	if err := waitFor(ctx, "node "+name, func() error { return k.ready(name, boot) }); err != nil {
		return err
	}
	k.log("node " + name + " is ready")
	return nil
}

// startNode starts the first process of a node, connects its link, and lets it go on.
func (k *keeper) startNode(name string) (progress *os.File, err error) {
	log, err := os.OpenFile(filepath.Join(k.nodeDir(name), "node.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	orders, order, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, orders.Close(), order.Close()) }()
	progress, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tell.Close()) }()
	cmd := exec.Command("/proc/self/exe", verb, partNode, k.Dir, name)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", environment(), orders, log, log, []*os.File{tell}
	cmd.SysProcAttr = &unix.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start node %q: %w", name, err), progress.Close())
	}
	p := &power{init: cmd, gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // it was killed
		close(p.gone)
	}()
	k.mu.Lock()
	k.nodes[name] = p
	k.mu.Unlock()
	err = k.description.bridge(0).Plug(name, uplinkName, cmd.Process.Pid)
	if err == nil {
		_, err = order.WriteString("go\n")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect node %q: %w", name, err), progress.Close(), k.powerOff(name))
	}
	return progress, nil
}

// powerOff kills the first process of a node, with which the kernel kills all others, and removes its control groups, as no boot leaves
// any.
func (k *keeper) powerOff(name string) error {
	if _, err := k.nodeNumber(name); err != nil {
		return err
	}
	k.mu.Lock()
	p := k.nodes[name]
	delete(k.nodes, name)
	k.mu.Unlock()
	if p == nil {
		return nil
	}
	err := cable.Unplug(name)
	_ = p.init.Process.Kill() // it may have crashed
	<-p.gone
	return errors.Join(err, waitFor(context.Background(), "the control groups of "+name, func() error {
		return removeGroups(groupName(k.ID) + "/" + name)
	}))
}

// ready returns nil when a node is ready in the given boot.
func (k *keeper) ready(name, boot string) error {
	text, err := k.get("/api/v1/nodes/" + name)
	if err != nil {
		return err
	}
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
			NodeInfo   struct{ BootID string }
		}
	}
	if err := json.Unmarshal([]byte(text), &node); err != nil {
		return err
	}
	if node.Status.NodeInfo.BootID != boot {
		return errors.New("its kubelet has not yet registered")
	}
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			return k.hasDriver(name)
		} else if c.Type == "Ready" {
			err = errors.New(c.Message)
		}
	}
	return errors.Join(errors.New("it is not ready"), err)
}

// hasDriver returns nil when the kubelet of a node knows the CSI driver.
func (k *keeper) hasDriver(node string) error {
	text, err := k.get("/apis/storage.k8s.io/v1/csinodes/" + node)
	if err == nil && !strings.Contains(text, StorageDriver) {
		err = errors.New("its kubelet does not know the CSI driver yet")
	}
	return err
}

// furnishNode writes the files of a node before each boot, and returns the boot's id.
func (k *keeper) furnishNode(name string) (boot string, err error) {
	number, err := k.nodeNumber(name)
	if err != nil {
		return "", err
	}
	dir := k.nodeDir(name)
	f := &folder{root: dir}
	for _, d := range []string{"containerd", "kubelet/plugins_registry", "cni", "sysctl"} {
		f.dir(d)
	}
	id := strings.ToLower(rand.Text() + rand.Text())[:32]
	boot = fmt.Sprintf("%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:])
	f.file(boot+"\n", "boot-id")
	f.file(fmt.Sprintf("%s%024d\n", k.ID, number), "machine-id")
	f.file("127.0.0.1 localhost\n", "hosts")
	f.file("", "resolv.conf")
	for file, value := range tunables {
		f.file(value+"\n", "sysctl", filepath.Base(file))
	}
	f.file(k.containerdConfig(dir), "containerd.toml")
	f.file(k.kubeletConfig(name), "kubelet.yaml")
	f.file(k.networkConfig(number), "cni", "10-cluster.conflist")
	return boot, f.err
}

// nsenter returns the arguments that run a program in the namespaces of a node.
func (k *keeper) inNode(name string, argv ...string) (*exec.Cmd, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.nodes[name]
	if p == nil {
		return nil, fmt.Errorf("node %q is off", name)
	}
	return exec.Command(k.Programs.Nsenter, append([]string{fmt.Sprintf("--target=%d", p.init.Process.Pid), "--mount", "--net", "--pid", "--"}, argv...)...), nil
}

// importImage imports the archive of an image on all nodes that are on.
func (k *keeper) importImage(_ context.Context, path string) error {
	for _, n := range k.Nodes {
		cmd, err := k.inNode(n.Name, importArguments(k.Dir, path)...)
		if err != nil {
			continue // it is off
		}
		if err := runWith(cmd, ""); err != nil {
			return fmt.Errorf("node %q: %w", n.Name, err)
		}
	}
	return nil
}

// bootTimeLimit only guards against hanging.
const bootTimeLimit = 2 * time.Minute

// runNode is the first process of a node.
func runNode(dir, name string) error {
	unix.CloseOnExec(repliesFile)
	progress := os.NewFile(repliesFile, "progress")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return errors.New("the keeper of the cluster ended")
	}
	d, err := load(dir)
	if err != nil {
		return err
	}
	number, err := d.nodeNumber(name)
	if err != nil {
		return err
	}
	err = errors.Join(unix.Sethostname([]byte(name)), d.mountNode(name))
	if err == nil {
		err = errors.Join(buildNodeNetwork(d, number), makeGroup(groupName(d.ID)+"/"+name))
	}
	if err != nil {
		return err
	}
	r := newReaper(d.nodeDir(name))
	ended := make(chan error)
	if err := d.bootNode(r, name, ended); err != nil {
		return err
	}
	if _, err := progress.WriteString("up\n"); err != nil {
		return err
	}
	return <-ended
}

// bootNode starts the servers of a node.
func (d *description) bootNode(r *reaper, name string, ended chan<- error) error {
	dir := d.nodeDir(name)
	if err := r.serve("containerd", ended, d.Programs.Containerd, "--config", filepath.Join(dir, "containerd.toml")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), bootTimeLimit)
	defer cancel()
	images, err := filepath.Glob(filepath.Join(d.Dir, "images", "*.tar"))
	if err != nil {
		return err
	}
	err = waitFor(ctx, "containerd", func() error {
		_, err := os.Stat(containerdSocket)
		return err
	})
	for _, path := range images {
		if err == nil {
			err = r.run("import", importArguments(d.Dir, path)...)
		}
	}
	if err != nil {
		return err
	}
	err = r.serve("csi-driver", ended, d.driverArguments(name)...)
	if err != nil {
		return err
	}
	return r.serve("kubelet", ended, d.kubeletArguments(name)...)
}

func (d *description) kubeletArguments(name string) []string {
	args := []string{
		d.Programs.Kube, "kubelet", "--config=" + filepath.Join(d.nodeDir(name), "kubelet.yaml"),
		"--kubeconfig=" + d.file(name+".kubeconfig"), "--hostname-override=" + name,
		"--node-ip=" + d.Nodes[slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == name })].Address.String(),
	}
	if d.Housekeeping > 0 {
		args = append(args, "--housekeeping-interval="+d.Housekeeping.String())
	}
	return args
}

// mountNode gives a node its own places for what programs keep at fixed paths. Nothing of it reaches the machine's disk elsewhere.
func (d *description) mountNode(name string) error {
	dir := d.nodeDir(name)
	if err := privateMounts(); err != nil {
		return err
	}
	err := errors.Join(mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID, "mode=755"), mount("tmpfs", "/var/log", "tmpfs", unix.MS_NOSUID, "mode=755"))
	if err != nil {
		return err
	}
	// CNI and others write below /var/lib, where the machine has files that programs need.
	err = errors.Join(os.MkdirAll("/run/overlay/upper", 0o755), os.MkdirAll("/run/overlay/work", 0o755))
	if err == nil {
		err = mount("overlay", "/var/lib", "overlay", 0, "lowerdir=/var/lib,upperdir=/run/overlay/upper,workdir=/run/overlay/work")
	}
	if err == nil {
		err = errors.Join(os.MkdirAll("/var/lib/kubelet", 0o755), os.MkdirAll("/run/lock", 0o755))
	}
	if err != nil {
		return err
	}
	binds := [][2]string{
		{"kubelet", "/var/lib/kubelet"}, {"boot-id", "/proc/sys/kernel/random/boot_id"}, {"hosts", "/etc/hosts"}, {"machine-id", "/etc/machine-id"},
	}
	for file := range tunables {
		binds = append(binds, [2]string{"sysctl/" + filepath.Base(file), filepath.Join("/proc/sys", file)})
	}
	for _, b := range binds {
		if _, err := os.Stat(b[1]); err != nil {
			continue // a kernel or a distribution without it
		}
		if err := mount(filepath.Join(dir, b[0]), b[1], "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return mount("", "/var/lib/kubelet", "", unix.MS_SHARED|unix.MS_REC, "")
}
