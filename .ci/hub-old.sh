#!/bin/sh
# Make a virtual environment with the oldest huggingface_hub that is supported, for the tests of the weights:
#   .ci/hub-old.sh /some/folder && DFLASHCTL_TEST_HUB_OLD_PYTHON=/some/folder/bin/python pytest tests/weights
set -eu
folder=${1:?usage: hub-old.sh FOLDER}
python=${PYTHON:-python3}
"$python" -m venv "$folder"
"$folder/bin/pip" install --quiet 'huggingface_hub==1.31.0'
"$folder/bin/python" -c 'import huggingface_hub; print(huggingface_hub.__version__)'
