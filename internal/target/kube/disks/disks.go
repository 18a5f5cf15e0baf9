// Package disks makes the volumes of VMs and takes their snapshots.
//
//	Claims.Make ──▶ a PersistentVolumeClaim for each volume ──▶ bound                         (claims.go)
//	Snapshots.Take ──▶ a VolumeSnapshot of each volume ──▶ ready ──▶ Sources of other claims   (snapshots.go)
//
// All objects carry the mark of their owner, and are found and removed by it.
package disks
