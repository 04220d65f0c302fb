"""Builds old releases of nginx from a git checkout, and keeps the binaries."""
import os
import shutil
import subprocess
import tempfile

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "weir-ledger")
# Allocations up to this size share a block of nginx's pool; larger ones are allocated one by one, so that AddressSanitizer sees their ends.
POOLED = 24
# crypt.h of today has no `current_salt`, <sys/sysctl.h> is gone, and the compilers of today warn more.
DEFINES = "-Dcurrent_salt=setting -fcommon -fno-strict-aliasing -w"
MODULES = {"--with-http_dav_module": (0, 6), "--with-http_mp4_module": (1, 1, 3), "--with-http_slice_module": (1, 9, 8), "--with-http_v2_module": (1, 9, 5)}


class NotBuilt(Exception):
    """The release does not compile here; the text has the end of the compiler's output."""


def number(release):
    return tuple(int(word) for word in release.split("."))


def nginx(checkout, release, asan, tls):
    """The path of nginx RELEASE, built before or now."""
    kept = os.path.join(CACHE, f"nginx-{release}{'-asan' if asan else ''}{'-ssl' if tls else ''}")
    if not os.path.exists(kept):
        os.makedirs(CACHE, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="weir-ledger-build.") as folder:
            compile_in(folder, checkout, release, asan, tls)
            shutil.copy2(f"{folder}/objs/nginx", kept + ".new")
        os.rename(kept + ".new", kept)
    return kept


def run(folder, *command):
    # Leaks of the small programs of `configure` are not of interest.
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"), check=False)
    if done.returncode:
        raise NotBuilt(" ".join((done.stdout + done.stderr).split("\n")[-12:])[-700:])


def compile_in(folder, checkout, release, asan, tls):
    archive = subprocess.run(["git", "-C", checkout, "archive", f"release-{release}"], capture_output=True, check=False)
    if archive.returncode:
        raise NotBuilt(archive.stderr.decode(errors="replace").strip())
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    os.makedirs(f"{folder}/compat/sys")
    with open(f"{folder}/compat/sys/sysctl.h", "w", encoding="ascii"):
        pass
    edit(f"{folder}/auto/cc/gcc", "-Werror", "")
    flags, link = f"-g -O1 -I{folder}/compat {DEFINES}", ""
    if asan:
        edit(f"{folder}/src/core/ngx_palloc.h", "(ngx_pagesize - 1)", str(POOLED))
        flags, link = flags + " -fsanitize=address -fno-omit-frame-pointer", "-fsanitize=address"
    words = [word for word, first in MODULES.items() if number(release) >= first]
    if tls:
        words += ["--with-http_ssl_module", "--with-stream", "--with-stream_ssl_module"]
    run(folder, "sh", "auto/configure", f"--prefix={folder}", f"--with-cc-opt={flags}", f"--with-ld-opt={link}", *words)
    run(folder, "make", "-j2", "-f", "objs/Makefile", "objs/nginx")


def edit(path, old, new):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text.replace(old, new))
