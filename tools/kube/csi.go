package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driverName is the CSI driver whose volumes are files of one folder that all nodes see, behind loop devices: as with a storage network a
// pod may start on another node with its volume.
const driverName = "files.kubelab.bragg.dev"

// driver is the driver's half of a node, or its controller. A volume is the file ID.img below "volumes", a snapshot one below
// "snapshots". The file ID.fs shows that a volume was used as a file system.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer

	folder, node, endpoint string
	mu                     sync.Mutex // one change at a time
}

func newDriver() *cobra.Command {
	d := &driver{}
	var kubeconfig string
	c := &cobra.Command{
		Use: "csi-driver", Short: "A CSI driver of files, with its provisioner", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			if d.node != "" {
				return d.serveNode(ctx)
			}
			return errors.Join(os.MkdirAll(filepath.Join(d.folder, "volumes"), 0o755), os.MkdirAll(filepath.Join(d.folder, "snapshots"), 0o755), d.serveController(ctx, kubeconfig))
		},
	}
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "path of a kubeconfig, for the controller")
	c.Flags().StringVar(&d.folder, "folder", "", "folder of volumes and snapshots")
	c.Flags().StringVar(&d.node, "node", "", "name of the node; without it this is the controller")
	c.Flags().StringVar(&d.endpoint, "endpoint", "", "path of the driver's socket")
	return c
}

// serveNode serves the kubelet, which finds the driver by a socket in its folder of registrations.
func (d *driver) serveNode(ctx context.Context) error {
	failed := make(chan error, 2)
	own := grpc.NewServer()
	csi.RegisterIdentityServer(own, d)
	csi.RegisterNodeServer(own, d)
	registrations := grpc.NewServer()
	registration.RegisterRegistrationServer(registrations, d)
	go func() { failed <- serveAt(own, d.endpoint) }()
	go func() { failed <- serveAt(registrations, "/var/lib/kubelet/plugins_registry/"+driverName+"-reg.sock") }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// serveController serves the sidecar of snapshots, and provisions volumes.
func (d *driver) serveController(ctx context.Context, kubeconfig string) error {
	failed := make(chan error, 2)
	s := grpc.NewServer()
	csi.RegisterIdentityServer(s, d)
	csi.RegisterControllerServer(s, d)
	go func() { failed <- serveAt(s, d.endpoint) }()
	go func() { failed <- provision(ctx, kubeconfig, d) }()
	return <-failed
}

func serveAt(s *grpc.Server, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	_ = os.Remove(path) // of the last boot
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	return s.Serve(l)
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: driverName, Endpoint: d.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, r *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !r.PluginRegistered {
		fmt.Fprintln(os.Stderr, "not registered:", r.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
	}}}}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	r := &csi.ControllerGetCapabilitiesResponse{}
	for _, c := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
	} {
		r.Capabilities = append(r.Capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: c}}})
	}
	return r, nil
}

// path is the file of a volume or a snapshot.
func (d *driver) path(kind, id string) (string, error) {
	if id == "" || id != filepath.Base(id) {
		return "", status.Errorf(codes.InvalidArgument, "id %q", id)
	}
	return filepath.Join(d.folder, kind, id+".img"), nil
}

const (
	sizeDefault = 64 << 20
	// parameterFails is a parameter of storage classes: volumes are refused with its text, as by a storage that is full.
	parameterFails = "fails"
)

func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if text := r.Parameters[parameterFails]; text != "" {
		return nil, status.Error(codes.ResourceExhausted, text)
	}
	size := max(r.GetCapacityRange().GetRequiredBytes(), 1<<20)
	if r.GetCapacityRange() == nil {
		size = sizeDefault
	}
	to, err := d.path("volumes", r.Name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	volume := &csi.Volume{VolumeId: r.Name, CapacityBytes: size, ContentSource: r.VolumeContentSource}
	if _, err := os.Stat(to); err == nil {
		return &csi.CreateVolumeResponse{Volume: volume}, nil
	}
	from := ""
	switch source := r.GetVolumeContentSource().GetType().(type) {
	case *csi.VolumeContentSource_Snapshot:
		from, err = d.path("snapshots", source.Snapshot.GetSnapshotId())
	case *csi.VolumeContentSource_Volume:
		from, err = d.path("volumes", source.Volume.GetVolumeId())
	}
	if err != nil {
		return nil, err
	}
	part := to + ".part"
	if from == "" {
		err = os.WriteFile(part, nil, 0o600)
	} else if err = copyFrozen(from, part, size); err == nil {
		err = copyMark(from, to)
	}
	if err == nil {
		err = os.Truncate(part, size)
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	return &csi.CreateVolumeResponse{Volume: volume}, err
}

// copyMark copies the mark of a file system.
func copyMark(from, to string) error {
	if !isFileSystem(from) {
		return nil
	}
	return os.WriteFile(mark(to), nil, 0o600)
}

func mark(image string) string { return strings.TrimSuffix(image, ".img") + ".fs" }

func isFileSystem(image string) bool {
	_, err := os.Stat(mark(image))
	return err == nil
}

// copyFrozen copies a volume or a snapshot as it is at one moment. That needs a file system in use to be frozen; a volume in block
// mode must not be written to meanwhile, because nothing can freeze it.
func copyFrozen(from, to string, sizeMax int64) (err error) {
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return status.Errorf(codes.NotFound, "source %s does not exist", filepath.Base(from))
	}
	if err != nil {
		return err
	}
	if sizeMax > 0 && info.Size() > sizeMax {
		return status.Errorf(codes.OutOfRange, "the source has %d bytes, more than %d", info.Size(), sizeMax)
	}
	thaw := func() error { return nil }
	if device := loopOf(from); device != "" && isFileSystem(from) {
		if thaw, err = freeze(device); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, thaw()) }()
	_, err = run("cp", "--sparse=always", "--reflink=auto", from, to)
	return err
}

// freeze freezes the file system on a device, which is mounted once more for that.
func freeze(device string) (thaw func() error, err error) {
	const ioctlFreeze, ioctlThaw = 0xC0045877, 0xC0045878 // FIFREEZE, FITHAW of linux/fs.h
	at, err := os.MkdirTemp("", "freeze")
	if err != nil {
		return nil, err
	}
	if _, err := run("mount", device, at); err != nil {
		return nil, errors.Join(err, os.Remove(at))
	}
	f, err := os.Open(at)
	if err == nil {
		err = errors.Join(unix.Syncfs(int(f.Fd())), unix.IoctlSetInt(int(f.Fd()), ioctlFreeze, 0))
	}
	return func() error {
		err := unix.IoctlSetInt(int(f.Fd()), ioctlThaw, 0)
		_ = f.Close() // a folder
		_, unmounted := run("umount", at)
		return errors.Join(err, unmounted, os.Remove(at))
	}, err
}

func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	path, err := d.path("volumes", r.VolumeId)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if device := loopOf(path); device != "" {
		if _, err := run("losetup", "--detach", device); err != nil {
			return nil, err
		}
	}
	_ = os.Remove(mark(path)) // only those of file systems have it
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (d *driver) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	from, err := d.path("volumes", r.SourceVolumeId)
	if err != nil {
		return nil, err
	}
	to, err := d.path("snapshots", r.Name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Stat(to)
	if err != nil {
		if err = errors.Join(copyFrozen(from, to+".part", 0)); err != nil {
			return nil, err
		}
		err = errors.Join(copyMark(from, to), os.Rename(to+".part", to))
		if err == nil {
			info, err = os.Stat(to)
		}
	}
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: r.Name, SourceVolumeId: r.SourceVolumeId, SizeBytes: info.Size(), CreationTime: timestamppb.New(info.ModTime()), ReadyToUse: true,
	}}, nil
}

func (d *driver) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	path, err := d.path("snapshots", r.SnapshotId)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(mark(path)) // as above
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	path, err := d.path("volumes", r.VolumeId)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := run("mountpoint", "-q", r.TargetPath); err == nil {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	device := loopOf(path)
	if device == "" {
		if device, err = run("losetup", "--find", "--show", path); err != nil {
			return nil, err
		}
	}
	if r.VolumeCapability.GetBlock() != nil {
		err = publishBlock(device, r.TargetPath)
	} else {
		err = publishFileSystem(device, path, r)
	}
	return &csi.NodePublishVolumeResponse{}, err
}

func publishBlock(device, target string) error {
	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		_, err = run("mount", "--bind", device, target)
	}
	return err
}

func publishFileSystem(device, path string, r *csi.NodePublishVolumeRequest) error {
	kind := r.VolumeCapability.GetMount().GetFsType()
	if kind == "" {
		kind = "ext4"
	}
	if _, err := run("blkid", "--probe", device); err != nil { // it has no file system yet
		if _, err := run("mkfs."+kind, "-q", device); err != nil {
			return err
		}
	}
	if err := errors.Join(os.WriteFile(mark(path), nil, 0o600), os.MkdirAll(r.TargetPath, 0o750)); err != nil {
		return err
	}
	options := r.VolumeCapability.GetMount().GetMountFlags()
	if kind == "xfs" {
		options = append(options, "nouuid") // a clone has the same one
	}
	if r.Readonly {
		options = append(options, "ro")
	}
	args := []string{device, r.TargetPath}
	if len(options) > 0 {
		args = append([]string{"-o", strings.Join(options, ",")}, args...)
	}
	_, err := run("mount", args...)
	return err
}

func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	path, err := d.path("volumes", r.VolumeId)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := run("mountpoint", "-q", r.TargetPath); err == nil {
		if _, err := run("umount", r.TargetPath); err != nil {
			return nil, err
		}
	}
	if err := os.RemoveAll(r.TargetPath); err != nil {
		return nil, err
	}
	if device := loopOf(path); device != "" {
		if _, err := run("losetup", "--detach", device); err != nil { // later, where another pod uses it
			return nil, err
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// loopOf returns the loop device of a file, "" where it has none.
func loopOf(path string) string {
	out, err := run("losetup", "--noheadings", "--output=NAME", "--associated", path)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(out, "\n")
	return strings.TrimSpace(name)
}

func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), err
}
