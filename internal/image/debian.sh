#!/bin/sh
# Makes a cloud image of Debian from what Debian's "generic" images are made of, with cloud-init, an sshd and netplan, and with further packages, from
# the Debian archives that apt knows on this machine. BuildDistribution runs it as root, in namespaces of its own; no loop device is used.
#
#     debian.sh WORK SUITE PACKAGE,…            makes WORK/image.qcow2, and lists its packages in WORK/packages
#     debian.sh WORK SUITE PACKAGE,… AGENT      makes WORK/disk (raw) for vSphere, with the agent in it: its VMs have no disk with a seed
set -eu
work=$1
suite=$2
with=$3
agent=${4:-}

# What is in all of Debian's cloud images, as far as it has a part in a boot or in a login.
packages=linux-image-cloud-amd64,initramfs-tools,zstd,grub-pc-bin,init,udev,dbus,libpam-systemd,polkitd,apparmor,\
cloud-init,cloud-guest-utils,cloud-initramfs-growroot,fdisk,netplan.io,systemd-resolved,systemd-timesyncd,libnss-myhostname,netbase,\
iproute2,iputils-ping,openssh-server,sudo,unattended-upgrades,less,procps${with:+,$with}

root=$work/root

apt-get indextargets --format 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) $(COMPONENT)' \
	'Created-By: Packages' 'Origin: Debian' | grep "] [^ ]* $suite" | sort -u >"$work/sources"
[ -s "$work/sources" ] || { echo "apt knows no archive of Debian $suite: apt-get update" >&2; exit 69; }
echo "installing packages"
mmdebstrap --quiet --variant=apt --format=directory --include="$packages" "$suite" "$root" "$work/sources"

chroot "$root" dpkg-query --show --showformat='${Package} ${Version}\n' >"$work/packages"

# A load starts servers itself. Those of packages would only take memory and ports from it.
for service in postgresql mariadb mysql iperf3 redis-server; do
	if [ -e "$root/lib/systemd/system/$service.service" ]; then chroot "$root" systemctl --quiet disable $service.service 2>/dev/null; fi
done

# Debian's images are emptied of what would make all machines one: identity, host keys, name.
rm -f "$root"/etc/ssh/ssh_host_* "$root/var/lib/dbus/machine-id" "$root/var/lib/systemd/random-seed"
: >"$root/etc/machine-id"
: >"$root/etc/hostname"
ln -sf /run/systemd/resolve/resolv.conf "$root/etc/resolv.conf"
echo 'locale: C.UTF-8' >"$root/etc/cloud/cloud.cfg.d/01_locale.cfg" # it needs no package and no making
chroot "$root" systemctl --quiet enable systemd-resolved.service systemd-networkd.service

if [ "$agent" ]; then
	install -m 0755 "$agent" "$root/usr/local/bin/bragg-agent"
	# A seed on a disk comes first, so that the image can be tried without a vCenter.
	echo 'datasource_list: [ NoCloud, VMware, None ]' >"$root/etc/cloud/cloud.cfg.d/99_bragg.cfg"
fi

uuid=$(cat /proc/sys/kernel/random/uuid)
echo "UUID=$uuid / ext4 rw,discard,errors=remount-ro 0 1" >"$root/etc/fstab"
mkdir -p "$root/boot/grub"
cp -r "$root/usr/lib/grub/i386-pc" "$root/boot/grub/"
cat >"$root/boot/grub/grub.cfg" <<END
set timeout=0
search --no-floppy --fs-uuid --set=root $uuid
linux $(cd "$root" && ls -d boot/vmlinuz-* | sed 's,^,/,') root=UUID=$uuid ro console=tty0 console=ttyS0,115200 consoleblank=0
initrd $(cd "$root" && ls -d boot/initrd.img-* | sed 's,^,/,')
boot
END
chroot "$root" grub-mkimage --format=i386-pc --output=/boot/grub/core.img --prefix='(hd0,msdos1)/boot/grub' \
	biosdisk part_msdos ext2 search search_fs_uuid linux normal configfile echo

# The first sector of GRUB reads the second, where its core begins unless somebody says otherwise: so it needs no installation.
echo "writing the disk"
disk=$work/disk
mib=1048576
size_mib=$(($(du -s -m "$root" | cut -f 1) + 1536))
[ $size_mib -ge 3072 ] || size_mib=3072
truncate -s ${size_mib}M "$disk"
echo 'start=2048, type=83, bootable' | sfdisk --quiet "$disk"
mkfs.ext4 -q -F -U "$uuid" -E offset=$mib -d "$root" "$disk" $((size_mib - 1))M
[ "$(stat -c %s "$root/boot/grub/core.img")" -le $((mib - 512)) ]
dd if="$root/usr/lib/grub/i386-pc/boot.img" of="$disk" bs=440 count=1 conv=notrunc status=none
dd if="$root/boot/grub/core.img" of="$disk" bs=512 seek=1 conv=notrunc status=none

if [ "$agent" ]; then
	rm -r "$root"
	exit 0
fi
echo "compressing the image"
qemu-img convert -c -O qcow2 "$disk" "$work/image.qcow2"
