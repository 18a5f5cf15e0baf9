"""Calls the emulator with Nutanix's own SDKs for version 4, as they come from PyPI, and checks what they make of its answers."""
import base64
import datetime
import importlib
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import ntnx_clustermgmt_py_client as clustermgmt
import ntnx_dataprotection_py_client as dataprotection
import ntnx_prism_py_client as prism
import ntnx_vmm_py_client as vmm
from ntnx_vmm_py_client.rest import ApiException as VmmException

calls = []


def client(package):
    c = package.Configuration()
    c.host, c.port = "127.0.0.1", int(os.environ["PRISM_PORT"])
    c.username, c.password = os.environ["PRISM_USER"], os.environ["PRISM_PASSWORD"]
    c.verify_ssl, c.max_retry_attempts, c.backoff_factor = False, 1, 0
    return package.ApiClient(configuration=c)


def call(method, *args, **kwargs):
    calls.append(method.__name__)
    return method(*args, **kwargs)


def models(package):
    """Returns what finds the class of a model: packages give some of them no short name."""
    return lambda name: getattr(importlib.import_module(package + name), name)


config = models("ntnx_vmm_py_client.models.vmm.v4.ahv.config.")


def check(fact, *what):
    if not fact:
        sys.exit("after %s: %r" % (calls[-1], what))


vmm_client, cluster_client, prism_client, point_client = client(vmm), client(clustermgmt), client(prism), client(dataprotection)
vms, images, vm_stats = vmm.VmApi(vmm_client), vmm.ImagesApi(vmm_client), vmm.StatsApi(vmm_client)
policies, vm_points = vmm.VmHostAffinityPoliciesApi(vmm_client), vmm.VmRecoveryPointsApi(vmm_client)
apart = vmm.VmAntiAffinityPoliciesApi(vmm_client)
clusters, containers, disks = (clustermgmt.ClustersApi(cluster_client), clustermgmt.StorageContainersApi(cluster_client),
                               clustermgmt.DisksApi(cluster_client))
tasks, categories = prism.TasksApi(prism_client), prism.CategoriesApi(prism_client)
points = dataprotection.RecoveryPointsApi(point_client)


def finish(answer, want="SUCCEEDED"):
    """Waits for the task of an answer."""
    check(answer.data.ext_id.startswith("ZXJnb24=:"), answer.data.ext_id)
    while True:
        task = call(tasks.get_task_by_id, answer.data.ext_id).data
        if str(task.status) not in ("QUEUED", "RUNNING"):
            check(str(task.status) == want, task.status, task.error_messages)
            return task
        time.sleep(0.005)


def affected(task, rel="vmm:ahv:config:vm"):
    return [e.ext_id for e in task.entities_affected if e.rel == rel]


def etag(entity):
    tag = vmm.ApiClient.get_etag(entity)
    check(tag, entity)
    return tag


def act(method, ext_id, *args):
    """Carries out an action on a VM with its ETag."""
    tag = etag(call(vms.get_vm_by_id, ext_id))
    return finish(call(method, ext_id, *args, if_match=tag))


# Clusters, hosts, disks.
found = call(clusters.list_clusters, _page=0, _limit=50, _filter="name eq 'lab'")
check(len(found.data) == 1 and found.metadata.total_available_results == 1, found)
cluster = found.data[0]
check(str(cluster.config.cluster_function[0]) == "AOS", cluster.config)
check(len(call(clusters.list_clusters).data) == 2)
check(call(clusters.get_cluster_by_id, cluster.ext_id).data.nodes.number_of_nodes == 3)
hosts = call(clusters.list_hosts).data
check(len(hosts) == 3 and hosts[0].hypervisor.external_address.ipv4.value, hosts)
check(len(call(clusters.list_hosts_by_cluster_id, cluster.ext_id, _limit=2).data) == 2)
host = call(clusters.get_host_by_id, cluster.ext_id, hosts[1].ext_id).data
check(host.node_serial == hosts[1].node_serial and host.memory_size_bytes > 0, host)
check(len(call(disks.list_disks).data) == 6)

# Storage containers: the settings of one are read, changed and changed back.
container = call(containers.list_storage_containers, _filter="startswith(name,'default')").data[0]
read = call(containers.get_storage_container_by_id, container.ext_id)
read.data.is_compression_enabled, read.data.compression_delay_secs = True, 3600
finish(call(containers.update_storage_container_by_id, container.ext_id, read.data))
changed = call(containers.get_storage_container_by_id, container.ext_id).data
check(changed.is_compression_enabled and changed.compression_delay_secs == 3600, changed)
new = clustermgmt.StorageContainer(name="tier", replication_factor=1)
made = finish(call(containers.create_storage_container, new, X_Cluster_Id=cluster.ext_id))
tier = affected(made, "clustermgmt:config:storage-container")[0]
check(call(containers.get_storage_container_by_id, tier).data.replication_factor == 1)

# Categories and images.
owner = call(categories.create_category, prism.Category(key="bragg-owner", value="run-1")).data
check(call(categories.get_category_by_id, owner.ext_id).data.value == "run-1")
check(len(call(categories.list_categories, _filter="key eq 'bragg-owner'").data) == 1)
image = call(images.list_images, _filter="name eq 'debian'").data[0]
check(call(images.get_image_by_id, image.ext_id).data.size_bytes == 5)
unreachable = vmm.Image(name="far", type=vmm.ImageType.DISK_IMAGE, source=vmm.UrlSource(url="https://example.com/image"))
failed = finish(call(images.create_image, unreachable), "FAILED")
check("no route" in failed.error_messages[0].message, failed.error_messages)

# VMs.
subnet = os.environ["PRISM_SUBNET"]
vm = config("Vm")(name="db", description="mark", num_sockets=1, num_cores_per_socket=2, memory_size_bytes=1 << 30)
vm.cluster = config("ClusterReference")(ext_id=cluster.ext_id)
vm.host = config("HostReference")(ext_id=hosts[2].ext_id)
vm.categories = [config("CategoryReference")(ext_id=owner.ext_id)]
vm.guest_customization = config("GuestCustomizationParams")(config=config("CloudInit")(
    datasource_type="CONFIG_DRIVE_V2", cloud_init_script=config("Userdata")(value=base64.b64encode(b"#cloud-config\n").decode())))
vm.disks = [
    config("Disk")(disk_address=config("DiskAddress")(bus_type="SCSI", index=0), backing_info=config("VmDisk")(
        data_source=config("DataSource")(reference=config("ImageReference")(image_ext_id=image.ext_id)))),
    config("Disk")(disk_address=config("DiskAddress")(bus_type="SCSI", index=1), backing_info=config("VmDisk")(
        disk_size_bytes=4 << 20, storage_container=config("VmDiskContainerReference")(ext_id=container.ext_id))),
]
vm.nics = [config("Nic")(network_info=config("NicNetworkInfo")(subnet=config("SubnetReference")(ext_id=subnet)))]
first = affected(finish(call(vms.create_vm, vm)))[0]
check(first in [one.ext_id for one in call(vms.list_vms, _limit=100, _filter="startswith(name,'d')").data])
got = call(vms.get_vm_by_id, first).data
check(got.disks[0].backing_info.data_source.reference.image_ext_id == image.ext_id, got.disks)
check(got.categories[0].ext_id == owner.ext_id and got.host is None and str(got.power_state) == "OFF", got)
act(vms.power_on_vm, first)
got = call(vms.get_vm_by_id, first).data
check(str(got.power_state) == "ON" and got.host.ext_id == hosts[2].ext_id, got.host)
check(got.nics[0].network_info.ipv4_info.learned_ip_addresses[0].value, got.nics)
act(vms.migrate_vm_to_host, first, config("VmMigrateToHostParams")(host=config("HostReference")(ext_id=hosts[0].ext_id)))
check(call(vms.get_vm_by_id, first).data.host.ext_id == hosts[0].ext_id)
act(vms.power_cycle_vm, first)
act(vms.reset_vm, first)
got = call(vms.get_vm_by_id, first).data
got.description = "another mark"
finish(call(vms.update_vm_by_id, first, got))
try:
    call(vms.update_vm_by_id, first, got)
    check(False, "an update with an old ETag")
except VmmException as e:
    check(e.status == 412, e.status, e.body)
check(call(vms.get_vm_by_id, first).data.description == "another mark")
act(vms.shutdown_vm, first)
act(vms.disassociate_categories, first, config("DisassociateVmCategoriesParams")(categories=[config("CategoryReference")(ext_id=owner.ext_id)]))
act(vms.associate_categories, first, config("AssociateVmCategoriesParams")(categories=[config("CategoryReference")(ext_id=owner.ext_id)]))
second = affected(act(vms.clone_vm, first, config("CloneOverrideParams")(name="db-2")))[1]
check(call(vms.get_vm_by_id, second).data.name == "db-2")
extra = config("Disk")(disk_address=config("DiskAddress")(bus_type="SCSI", index=2), backing_info=config("VmDisk")(disk_size_bytes=1 << 20))
finish(call(vms.create_disk, second, extra))
check([d.disk_address.index for d in call(vms.list_disks_by_vm_id, second).data] == [0, 1, 2])

# Affinity by categories.
policy_model = models("ntnx_vmm_py_client.models.vmm.v4.ahv.policies.")
policy = policy_model("VmHostAffinityPolicy")(
    name="pinned", vm_categories=[policy_model("CategoryReference")(ext_id=owner.ext_id)],
    host_categories=[policy_model("CategoryReference")(ext_id=owner.ext_id)])
finish(call(policies.create_vm_host_affinity_policy, policy))
pinned = call(policies.list_vm_host_affinity_policies).data[0]
check(pinned.name == "pinned" and call(policies.get_vm_host_affinity_policy_by_id, pinned.ext_id).data.vm_categories, pinned)
tag = etag(call(vms.get_vm_by_id, first))
refused = finish(call(vms.power_on_vm, first, if_match=tag), "FAILED")
check("affinity" in refused.error_messages[0].message, refused.error_messages)
check(call(policies.list_vm_host_affinity_policy_vm_compliance_states, pinned.ext_id).data is None)  # none runs
tag = vmm.ApiClient.get_etag(call(policies.get_vm_host_affinity_policy_by_id, pinned.ext_id))
finish(call(policies.delete_vm_host_affinity_policy_by_id, pinned.ext_id, if_match=tag))

spread = policy_model("VmAntiAffinityPolicy")(name="spread", categories=[policy_model("CategoryReference")(ext_id=owner.ext_id)])
finish(call(apart.create_vm_anti_affinity_policy, spread))
act(vms.power_on_vm, first)
act(vms.power_on_vm, second)
spread = call(apart.list_vm_anti_affinity_policies).data[0]
states = call(apart.list_vm_anti_affinity_policy_vm_compliance_states, spread.ext_id).data
check(sorted(s.ext_id for s in states) == sorted([first, second]), states)
check(all(type(s.compliance_status).__name__.endswith("CompliantVmAntiAffinityPolicy") for s in states), states)
check(call(apart.get_vm_anti_affinity_policy_by_id, spread.ext_id).data.categories[0].ext_id == owner.ext_id)
act(vms.power_off_vm, first)
act(vms.power_off_vm, second)
tag = vmm.ApiClient.get_etag(call(apart.get_vm_anti_affinity_policy_by_id, spread.ext_id))
finish(call(apart.delete_vm_anti_affinity_policy_by_id, spread.ext_id, if_match=tag))

# Recovery points.
point_model = models("ntnx_dataprotection_py_client.models.dataprotection.v4.config.")
wanted = point_model("RecoveryPoint")(name="before", recovery_point_type="CRASH_CONSISTENT",
                                      vm_recovery_points=[point_model("VmRecoveryPoint")(vm_ext_id=first)])
finish(call(points.create_recovery_point, wanted))
point = call(points.list_recovery_points, _filter="name eq 'before'").data[0]
part = call(points.get_recovery_point_by_id, point.ext_id).data.vm_recovery_points[0]
check(part.vm_ext_id == first, part)
act(vms.revert_vm, first, config("RevertParams")(vm_recovery_point_ext_id=part.ext_id))
restored = affected(finish(call(points.restore_recovery_point, point.ext_id, point_model("RecoveryPointRestorationSpec")(
    cluster_ext_id=cluster.ext_id, is_instant_restore=False))))[0]
check(call(vms.get_vm_by_id, restored).data.name == "db" and restored != first)
check(call(vm_points.list_vm_recovery_points).data[0].vm_ext_id == first)
finish(call(points.delete_recovery_point_by_id, point.ext_id))
check(call(points.list_recovery_points).data is None)

# Maintenance of a host.
act(vms.power_on_vm, first)
away = call(vms.get_vm_by_id, first).data.host.ext_id
operation = models("ntnx_clustermgmt_py_client.models.clustermgmt.v4.operations.")
tag = clustermgmt.ApiClient.get_etag(call(clusters.get_host_by_id, cluster.ext_id, away))
slow = call(clusters.enter_host_maintenance, cluster.ext_id, away, operation("EnterHostMaintenanceSpec")(timeout_seconds=60), if_match=tag)
check(call(tasks.get_task_by_id, slow.data.ext_id).data.is_cancelable)
check("canceled" in call(tasks.cancel_task, slow.data.ext_id).data.message)
finish(slow, "CANCELED")
finish(call(clusters.enter_host_maintenance, cluster.ext_id, away, operation("EnterHostMaintenanceSpec")(timeout_seconds=60), if_match=tag))
check(call(clusters.get_host_by_id, cluster.ext_id, away).data.maintenance_state == "entered_maintenance_mode")
check(call(vms.get_vm_by_id, first).data.host.ext_id != away)
tag = clustermgmt.ApiClient.get_etag(call(clusters.get_host_by_id, cluster.ext_id, away))
finish(call(clusters.exit_host_maintenance, cluster.ext_id, away, operation("HostMaintenanceCommonSpec")(timeout_seconds=60), if_match=tag))
check(call(vms.get_vm_by_id, first).data.host.ext_id == away)

# Statistics.
end = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=1)
span = {"_startTime": end - datetime.timedelta(minutes=5), "_endTime": end, "_samplingInterval": 30, "_statType": "AVG"}
rows = call(vm_stats.get_vm_stats_by_id, first, _select="stats/controllerNumIops,stats/controllerRandomIoPpm", **span).data.stats
check(len(rows) >= 9 and rows[0].controller_num_iops > 0 and rows[0].controller_random_io_ppm > 0, rows)
series = call(clusters.get_cluster_stats, cluster.ext_id, **span).data.controller_num_iops
check(len(series) >= 9 and series[0].value > 0, series)
check(call(clusters.get_host_stats, cluster.ext_id, away, **span).data.hypervisor_cpu_usage_ppm[0].value > 0)
check(call(containers.get_storage_container_stats, container.ext_id, **span).data.controller_num_iops)
check(call(disks.get_disk_stats, call(disks.list_disks).data[0].ext_id, **span).data.ext_id)

# The end.
act(vms.power_off_vm, first)
for one in (first, second, restored):
    act(vms.delete_vm_by_id, one)
check(call(vms.list_vms).data is None)
call(categories.delete_category_by_id, owner.ext_id)
finish(call(containers.delete_storage_container_by_id, tier))
check(len(call(tasks.list_tasks, _limit=100).data) > 20)
try:
    call(vms.get_vm_by_id, first)
    check(False, "a deleted VM")
except VmmException as e:
    check(e.status == 404, e.status)
print(len(calls), len(set(calls)))
