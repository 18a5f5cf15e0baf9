package faults

import (
	"archive/tar"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/braggdev/bragg/internal/target/vsphere/vcsimtest"
)

const descriptor = `<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData" xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData">
  <References><File ovf:href="disk.vmdk" ovf:id="file1" ovf:size="SIZE"/></References>
  <DiskSection><Info>disks</Info><Disk ovf:capacity="8" ovf:capacityAllocationUnits="byte * 2^20" ovf:diskId="disk1" ovf:fileRef="file1" ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/></DiskSection>
  <VirtualSystem ovf:id="guest"><Info>a guest</Info><Name>guest</Name>
    <OperatingSystemSection ovf:id="96"><Info>Debian</Info></OperatingSystemSection>
    <VirtualHardwareSection><Info>hardware</Info>
      <System><vssd:ElementName>hw</vssd:ElementName><vssd:InstanceID>0</vssd:InstanceID><vssd:VirtualSystemIdentifier>guest</vssd:VirtualSystemIdentifier><vssd:VirtualSystemType>vmx-13</vssd:VirtualSystemType></System>
      <Item><rasd:ElementName>1 vCPU</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:ElementName>256 MiB</rasd:ElementName><rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>256</rasd:VirtualQuantity></Item>
      <Item><rasd:ElementName>SCSI</rasd:ElementName><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType><rasd:ResourceType>6</rasd:ResourceType></Item>
      <Item><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:ElementName>disk</rasd:ElementName><rasd:HostResource>ovf:/disk/disk1</rasd:HostResource><rasd:InstanceID>4</rasd:InstanceID><rasd:Parent>3</rasd:Parent><rasd:ResourceType>17</rasd:ResourceType></Item>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
`

// image writes an OVA. The content of its disk is invalid, which the simulator does not notice.
func image(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "guest.ova"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	disk := strings.Repeat("disk", 4096)
	for _, file := range []struct{ name, text string }{{"guest.ovf", strings.Replace(descriptor, "SIZE", "16384", 1)}, {"disk.vmdk", disk}} {
		if err := w.WriteHeader(&tar.Header{Name: file.name, Mode: 0o600, Size: int64(len(file.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(file.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// An image is imported once, also after an import that was interrupted.
func TestImportOfImage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	image(t, r.dir)
	r.config.Templates = map[string]string{"linux": "guest.ova"}
	var uploads atomic.Int64
	var broken atomic.Bool
	broken.Store(true)
	r.Front(func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if strings.HasPrefix(q.URL.Path, "/nfc/") {
				uploads.Add(1)
				if broken.Load() {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
			}
			inner.ServeHTTP(w, q)
		})
	})
	v := r.open(t)
	if _, err := v.Create(t.Context(), r.tag, specs(t.Context(), v, 1)); err == nil {
		t.Fatal("a VM was made from an image whose upload failed")
	}
	broken.Store(false)
	uploads.Store(0)
	for range 2 { // the second time by another program
		v := r.open(t)
		vms := r.create(t, v, 2)
		if err := v.Delete(t.Context(), r.tag, vms); err != nil {
			t.Fatal(err)
		}
	}
	if n := uploads.Load(); n != 1 {
		t.Errorf("%d uploads, want 1", n)
	}
	left := r.left()
	if len(left) != 1 || !strings.HasPrefix(left[0], "bragg-image-guest-") || strings.HasSuffix(left[0], "-partial") {
		t.Errorf("left: %q, want the image", left)
	}
	if _, ok := r.VMs()[vcsimtest.Template]; !ok {
		t.Error("the template of the user is gone")
	}
}
