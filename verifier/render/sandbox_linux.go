package render

import (
	"os/exec"
	"syscall"
)

// executable is this program, even when its file was replaced meanwhile.
func executable() (string, error) { return "/proc/self/exe", nil }

// isolations are the namespaces to try for the child, the strictest first. A new network namespace
// has no interface but a loopback that is down. Kernels and containers may refuse either.
func isolations(uid int) []uintptr {
	if uid == 0 {
		return []uintptr{syscall.CLONE_NEWNET, 0}
	}
	return []uintptr{syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, 0}
}

func isolate(cmd *exec.Cmd, flags uintptr) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: flags}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// slack is what the Go runtime maps beside the heap: it takes memory from the system in arenas of
// 64 MiB.
const slack = 128 << 20

// limit bounds this process: writable memory, processor time of all its threads, open files, and no
// file written at all (standard output is a pipe).
func limit(memory int64, seconds int) error {
	cpu := uint64(2 * seconds)
	for resource, max := range map[int]uint64{
		syscall.RLIMIT_DATA:   uint64(memory) + slack,
		syscall.RLIMIT_CPU:    cpu,
		syscall.RLIMIT_NOFILE: 64,
		syscall.RLIMIT_FSIZE:  0,
		syscall.RLIMIT_CORE:   0,
	} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: max, Max: max}); err != nil {
			return err
		}
	}
	return nil
}
