# Install Mountpoint for Amazon S3 from FOLDER: FILE, its signature FILE.asc and AWS's keys in KEYS.
# FINGERPRINTS: the keys of AWS that are trusted. Held against upgrades.

trap 'rm -rf "$FOLDER"' EXIT
cd "$FOLDER"
command -v gpgv >/dev/null || (apt_install gpgv)
python3 -c '
import base64, re, sys
text = open("KEYS", encoding="ascii", errors="replace").read()
blocks = re.findall("-----BEGIN PGP PUBLIC KEY BLOCK-----.*?\n\n(.*?)\n=", text, re.DOTALL)
open("keys.gpg", "wb").write(b"".join(map(base64.b64decode, blocks)))'
signer=$(gpgv --keyring ./keys.gpg --status-fd 1 "$FILE.asc" "$FILE" 2>/dev/null \
    | awk '$2 == "VALIDSIG" { print $NF }') || signer=
case " $FINGERPRINTS " in
    *" ${signer:-none} "*) ;;
    *) fail "$FILE is not signed by AWS (signer: ${signer:-none}); nothing was installed" ;;
esac
(apt_install --allow-change-held-packages "./$FILE")
apt-mark hold mount-s3 >/dev/null
