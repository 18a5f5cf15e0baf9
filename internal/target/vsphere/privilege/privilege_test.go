package privilege

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

// Hosts that lack the same privileges are named together, and not all of many.
func TestLacking(t *testing.T) {
	var all []types.EntityPrivilege
	names := map[types.ManagedObjectReference]string{}
	for i := range 9 {
		ref := types.ManagedObjectReference{Type: "HostSystem", Value: fmt.Sprintf("host-%d", i)}
		names[ref] = fmt.Sprintf("esx-%d", i)
		all = append(all, types.EntityPrivilege{Entity: ref, PrivAvailability: []types.PrivilegeAvailability{
			{PrivId: "Host.Config.Maintenance", IsGranted: i == 8}, {PrivId: "System.View", IsGranted: i > 0},
		}})
	}
	want := []string{
		`on host "esx-0": Host.Config.Maintenance, System.View`,
		`on hosts "esx-1", "esx-2", "esx-3", "esx-4", "esx-5" and 2 more: Host.Config.Maintenance`,
	}
	if got := lacking(Host, all, names); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The role of the guide has the privileges that are checked, and no others.
func TestRoleOfTheGuide(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/guides/vsphere.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "govc role.create bragg ")
	list, _, _ := strings.Cut(after, "govc permissions.set")
	got := strings.Fields(strings.ReplaceAll(list, "\\", ""))
	var want []string
	for _, k := range Kinds() {
		want = append(want, Needed(k)...)
	}
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("the guide has %q, want %q", got, want)
	}
}
